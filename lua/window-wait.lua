-- Part of the body of lease.lua: how long until T could be what the first of those who wait needs, under windows.
--
-- Sets: short.
-- Twin of: wait() of src/ceiling/refill/{fixed-window,sliding-log,sliding-counter}.ts. Clock: `now`.
-- Used by: allotment.lua.
local missing = head - tokens
if callRule <= CALENDAR then
  local canSpend = leaseWithin(callRule, MAX_SAFE_INTEGER, wLength, wEnd, now) > 0
  short = missing <= 0 and canSpend and 0 or wEnd - now
elseif callRule == LOG then
  local place, leaves = 1, now
  while missing > 0 and place < #log do
    local time, amount = struct.unpack('>dd', log, place)
    missing = missing - amount
    leaves = time + wLength
    place = place + 16
  end
  short = max(leaves - now, missing > 0 and refillTime(missing, rateNum, rateDen) or 0)
else
  local counted = wPrevious == 0 and 0 or min(wPrevious, floor(wPrevious * ((wEnd - now) / wLength)) + 1)
  if missing <= 0 then
    short = 0
  elseif counted > missing + 1 then
    local part = (wEnd - now) / wLength - (counted - missing - 1) / wPrevious
    short = min(wEnd - now, ceil(part * wLength) + 1)
  else
    local later = missing - counted
    local part = later > 0 and wCurrent > 0 and min(1, (later + 1) / wCurrent) or 0
    short = wEnd - now + ceil(part * wLength)
  end
end
