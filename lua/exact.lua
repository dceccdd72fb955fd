-- Exact whole-number arithmetic on tokens and time, and the one refill function.
--
-- Keeps: no number passes 2^53 unless it is thrown away; cutting a span in pieces changes nothing (rule 12); time that
--   went backwards pays nothing. `a % b` of Lua 5.1 rounds, so remainders are math.fmod and quotients (a - r) / b.
-- A level goes in and comes out as its three numbers: tokens, remainder, at.
-- Twin of: src/ceiling/exact.ts, which has the reasons. Clock: `now` as given. Writes nothing.
-- Used by: fence.lua, allotment.lua, ledger.lua, lease.lua.

-- a * b + carry over divisor: quotient, remainder. Whole, not negative; divisor and carry below 2^52.
local function multiplyDivide(a, b, divisor, carry)
  local rest = math.fmod(a, divisor)
  local whole = ((a - rest) / divisor) * b
  local product = rest * b + carry
  if product <= 9007199254740991 then
    local remainder = math.fmod(product, divisor)
    return whole + (product - remainder) / divisor, remainder
  end
  local quotient, remainder, left, bit = 0, 0, b, 4503599627370496
  while bit >= 1 do
    quotient = quotient * 2
    remainder = remainder * 2
    if remainder >= divisor then
      remainder = remainder - divisor
      quotient = quotient + 1
    end
    if left >= bit then
      left = left - bit
      remainder = remainder + rest
      if remainder >= divisor then
        remainder = remainder - divisor
        quotient = quotient + 1
      end
    end
    bit = bit / 2
  end
  remainder = remainder + carry
  if remainder >= divisor then
    remainder = remainder - divisor
    quotient = quotient + 1
  end
  return whole + quotient, remainder
end

local function capAt(tokens, remainder, at, now, cap)
  if tokens < cap or (tokens == cap and at > now) then return tokens, remainder, at end
  if at <= now then at = now + 1 end
  return cap, 0, at
end

local function refill(tokens, remainder, at, now, rateNum, rateDen, cap)
  local elapsed = now - at
  if elapsed > 0 then
    local room = cap - tokens
    local about = (elapsed / rateDen) * rateNum
    if about > room * 1.001 + 1 then
      tokens = cap + 1
    else
      local gained
      gained, remainder = multiplyDivide(elapsed, rateNum, rateDen, remainder)
      tokens = tokens + gained
    end
    at = now
  end
  return capAt(tokens, remainder, at, now, cap)
end

local function refillTime(missing, rateNum, rateDen)
  if missing <= 0 then return 0 end
  return min(LONGEST, ceil((missing / rateNum) * rateDen) + 1)
end

local function leaseGrace(lease)
  return ceil(lease / 100) + MAX_SKEW
end
