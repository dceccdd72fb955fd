-- Part of the body of lease.lua: makes a new bucket of a ceiling that is no token bucket what one is that nobody has
-- touched; window-refill.lua then brings it up to now.
--
-- Sets: tokens, remainder, at, w…, clearedAt, log.
-- Keeps: data that is young gives nothing of what may have been spent before it.
-- Twin of: begin() of src/ceiling/refill/{fixed-window,sliding-log,sliding-counter}.ts. Clock: `now`.
-- Used by: ledger.lua.
tokens, remainder, at = 0, 0, now
wLength, wStart, wEnd, wCurrent, wPrevious, wLastFrom, clearedAt, log = fLength, 0, 0, 0, 0, 0, 0, ''
if callRule > CALENDAR then
  local birth = max(bornAt, guardUntil)
  if callRule == LOG then
    if bornAt > 0 and birth + wLength > now then
      wCurrent, wLastFrom, log = burst, birth, struct.pack('>dd', birth, burst)
    end
  else
    wStart = now - math.fmod(now, wLength)
    if bornAt > 0 then
      local begun = birth - math.fmod(birth, wLength)
      if begun >= wStart then
        wStart, wCurrent = begun, burst
      elseif begun == wStart - wLength then
        wPrevious = burst
      end
    end
    wEnd = wStart + wLength
  end
end
