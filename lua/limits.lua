-- Constants that the ledger and its callers agree on. Microseconds and micro-tokens.
--
-- Twin of: the constants of src/ceiling/{ceiling-store,exact,fence,ledger}.ts; test/lua holds them against each other.
-- Clock: none. Writes nothing. Used by: lease.lua and its fragments.
local MICRO = 1000000
local MAX_SKEW = 100000
local MAX_AGE = 250000
local KEEP_LONGER = 1000000
local CONTEST = 60000000
local ASSERT_EVERY = 5000000
local LONGEST = 2251799813685248
local MAX_SAFE_INTEGER = 9007199254740991
-- Rules by which tokens come back. The token bucket is 0, fixed windows are 1 (from the epoch) to CALENDAR, a counter 5.
local FIRST_USE, CALENDAR, LOG = 2, 3, 4
local AS_IS, PROPORTIONAL, ADDITIVE, RESET = 0, 1, 2, 3

local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local pack, unpackMessage = cmsgpack.pack, cmsgpack.unpack
