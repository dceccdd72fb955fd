-- Part of the body of lease.lua: what the data of a bucket with windows says may be older than what was granted, so
-- nothing is left of it.
--
-- Sets: tokens, w…, log.
-- Twin of: suspect() of src/ceiling/refill/{fixed-window,sliding-log,sliding-counter}.ts. Clock: `now`.
-- Used by: ledger.lua.
if callRule <= CALENDAR then
  tokens = min(tokens, 0)
elseif callRule == LOG then
  local logged = burst - outstanding - min(tokens, 0)
  wCurrent, log = 0, ''
  if logged > 0 then
    wLastFrom = max(bornAt, guardUntil)
    wCurrent, log = logged, struct.pack('>dd', wLastFrom, logged)
  end
  tokens = burst - outstanding - wCurrent
else
  local counted = wPrevious == 0 and 0 or min(wPrevious, floor(wPrevious * ((wEnd - now) / wLength)) + 1)
  wCurrent = wCurrent + max(0, burst - outstanding - wCurrent - counted)
  tokens = burst - outstanding - wCurrent - counted
end
