-- Functions on windows: which one a moment lies in, and how long a grant may be spent in it. Made where a call of the
-- batch is about windows, and not for the others: each function costs a tenth of a microsecond a script.
--
-- Keeps: no lease outlives its fixed window, but for an edge that covers the drift and the small steps of clocks.
-- Twin of: setWindow() and leaseLeft() of src/ceiling/refill/fixed-window.ts, which has the reasons. Clock: `now` as given.
-- Writes nothing. Used by: lease.lua, window-rebase.lua, window-refill.lua, window-settle.lua.

-- Start and end.
windowAt = function(rule, length, callStart, callEnd, now)
  if rule == FIRST_USE then return now, now + length end
  if rule == CALENDAR then
    if now >= callStart and now < callEnd then return callStart, callEnd end
    return now, now + length
  end
  local start = now - math.fmod(now, length)
  return start, start + length
end

-- 0: not long enough to be granted.
leaseWithin = function(rule, lease, length, windowEnd, now)
  if rule > CALENDAR then return lease end
  local left = windowEnd - now - min(MAX_SKEW, ceil(length / 100))
  if lease + ceil(lease / 100) <= left then return lease end
  local short = floor(left / 1.01)
  return short < 5000 and 0 or short
end
