-- Functions on terms: what becomes of a level that is carried over from terms to terms.
--
-- Keeps: a bucket that is carried over never holds more than its new burst less what is outstanding.
-- Twin of: inherit() and changeTerms() of src/ceiling/fence.ts, which has the reasons. Clock: `now` as given.
-- Writes nothing. Used by: meet-fence.lua, ledger.lua.

-- A level under a burst of `from`, of which `outstanding` are out, carried over to a burst of `to`.
local function inherit(tokens, at, now, from, to, inheritance, outstanding)
  if inheritance == PROPORTIONAL and tokens > 0 then
    tokens = multiplyDivide(tokens, to, from, 0)
  elseif inheritance == ADDITIVE then
    tokens = tokens + (to - from)
  elseif inheritance == RESET then
    tokens = max(tokens, 0) + to
  end
  return capAt(tokens, 0, at, now, to - outstanding)
end

-- The untouched level under the terms of the fence, carried over to a burst of `to`.
local function changeTerms(tokens, remainder, at, now, burst, rateNum, rateDen, to, inheritance, guardUntil)
  if guardUntil == 0 then
    tokens, remainder, at = refill(tokens, remainder, at, now, rateNum, rateDen, burst)
  else
    tokens, remainder, at = refillGuarded(tokens, remainder, at, now, rateNum, rateDen, burst, 0, guardUntil)
  end
  return inherit(tokens, at, now, burst, to, inheritance, 0)
end
