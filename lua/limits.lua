-- Constants that the ledger and its callers agree on. Microseconds and micro-tokens.
--
-- Twin of: the constants of src/ceiling/{ceiling-store,exact,fence,ledger}.ts; test/lua holds them against each other.
-- Used by: every fragment of lease.lua.
local MICRO = 1000000
local MAX_SKEW = 100000
local MAX_AGE = 250000
local KEEP_LONGER = 1000000
local CONTEST = 60000000
local ASSERT_EVERY = 5000000
local LONGEST = 2251799813685248
local MAX_SAFE_INTEGER = 9007199254740991

local floor, ceil, min, max, fmod = math.floor, math.ceil, math.min, math.max, math.fmod

local function leaseGrace(lease)
  return ceil(lease / 100) + MAX_SKEW
end
