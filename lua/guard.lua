-- Functions on the guard: the time after a loss of the store's data in which wallets may hold what it has not heard of,
-- where a policy asks for the strict rule. Made where a call of the batch asks for it.
--
-- Keeps: T + O <= (1 - ω)B until the guard is over; T is not pushed below zero for it.
-- Twin of: src/ceiling/guard.ts, which has the reasons. Clock: `now` as given. Writes nothing.
-- Used by: fence.lua, allotment.lua, ledger.lua, lease.lua.
heldReady = function(burst)
  return floor(0.4 * burst)
end

capUnder = function(burst, outstanding, guardUntil, now)
  local cap = burst - outstanding
  if now < guardUntil then return min(cap, max(0, cap - heldReady(burst))) end
  return cap
end

refillGuarded = function(tokens, remainder, at, now, rateNum, rateDen, burst, outstanding, guardUntil)
  if at < guardUntil and now >= guardUntil then
    local cap = capUnder(burst, outstanding, guardUntil, guardUntil - 1)
    tokens, remainder, at = refill(tokens, remainder, at, guardUntil, rateNum, rateDen, cap)
  end
  return refill(tokens, remainder, at, now, rateNum, rateDen, capUnder(burst, outstanding, guardUntil, now))
end
