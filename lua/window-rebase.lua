-- Part of the body of lease.lua: the store's clock has stepped back further than allowed, under windows.
--
-- Sets: w…, clearedAt, log. T stays as it is.
-- Twin of: rebase() of src/ceiling/refill/{fixed-window,sliding-log,sliding-counter}.ts. Clock: `now`.
-- Used by: ledger.lua.
if callRule <= CALENDAR then
  if now < wStart then wStart, wEnd = windowAt(callRule, wLength, callStart, callEnd, now) end
  clearedAt = min(clearedAt, now)
  latest = min(latest, wEnd)
elseif callRule == LOG then
  local entries = {}
  for place = 1, #log, 16 do
    local time, amount = struct.unpack('>dd', log, place)
    entries[#entries + 1] = struct.pack('>dd', min(time, now), amount)
  end
  log = table.concat(entries)
  wLastFrom = min(wLastFrom, now)
else
  wCurrent, wPrevious = wCurrent + wPrevious, 0
  wStart = now - math.fmod(now, wLength)
  wEnd = wStart + wLength
end
