-- Exact whole-number arithmetic on tokens and time, and the one refill function.
--
-- Keeps: no number passes 2^53 unless it is thrown away; cutting a span in pieces changes nothing (rule 12); time that
--   went backwards pays nothing. `a % b` of Lua 5.1 rounds, so remainders are math.fmod and quotients (a - r) / b.
-- Twin of: src/ceiling/exact.ts, which has the reasons. Clock: `now` as given. Writes nothing.
-- Used by: fence.lua, allotment.lua, ledger.lua.

-- a * b + carry over divisor: quotient, remainder. Whole, not negative; divisor and carry below 2^52.
local function multiplyDivide(a, b, divisor, carry)
  local rest = fmod(a, divisor)
  local whole = ((a - rest) / divisor) * b
  local product = rest * b + carry
  if product <= MAX_SAFE_INTEGER then
    local remainder = fmod(product, divisor)
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

local function capAt(level, cap)
  if level.tokens < cap or (level.tokens == cap and level.at > now) then return end
  level.tokens = cap
  level.remainder = 0
  if level.at <= now then level.at = now + 1 end
end

local function refill(level, terms, cap)
  local elapsed = now - level.at
  if elapsed > 0 then
    local room = cap - level.tokens
    local about = (elapsed / terms.rateDen) * terms.rateNum
    if about > room * 1.001 + 1 then
      level.tokens = cap + 1
    else
      local gained, remainder = multiplyDivide(elapsed, terms.rateNum, terms.rateDen, level.remainder)
      level.tokens = level.tokens + gained
      level.remainder = remainder
    end
    level.at = now
  end
  capAt(level, cap)
end

local function refillTime(missing, terms)
  if missing <= 0 then return 0 end
  return min(LONGEST, ceil((missing / terms.rateNum) * terms.rateDen) + 1)
end
