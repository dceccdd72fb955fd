-- Part of the body of lease.lua: lets come back what time gives back under windows, with the old O.
--
-- Sets: tokens, outstanding, w…, clearedAt, log.
-- Keeps: fixed windows: T <= N at a window's start, and never raised by time within it; log and counter: T + O + what
--   still counts as spent = N.
-- Twin of: refill() of src/ceiling/refill/{fixed-window,sliding-log,sliding-counter}.ts, which have the proofs.
-- Clock: `now`. Used by: ledger.lua.
if callRule <= CALENDAR then
  if now >= wEnd then
    -- All leases have ended with their window; records are cleared as they are come across.
    outstanding = 0
    wStart, wEnd = windowAt(callRule, wLength, callStart, callEnd, now)
    clearedAt = wStart
    if callRule == FIRST_USE and bornAt > 0 and now < bornAt + wLength then
      wEnd = bornAt + wLength
      tokens = 0
    else
      tokens = bornAt > wStart and 0 or burst
    end
  end
elseif callRule == LOG then
  local left = 0
  while left < #log do
    local time, amount = struct.unpack('>dd', log, left + 1)
    if time + wLength > now then break end
    wCurrent = wCurrent - amount
    left = left + 16
  end
  if left > 0 then log = string.sub(log, left + 1) end
  tokens = burst - outstanding - wCurrent
else
  if now >= wEnd then
    wPrevious = now < wEnd + wLength and wCurrent or 0
    wCurrent = 0
    wStart = now - math.fmod(now, wLength)
    wEnd = wStart + wLength
  end
  local counted = wPrevious == 0 and 0 or min(wPrevious, floor(wPrevious * ((wEnd - now) / wLength)) + 1)
  tokens = burst - outstanding - wCurrent - counted
end
