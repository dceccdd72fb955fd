-- Part of the body of lease.lua: takes in what this call counts as spent (`spent`), and holds T to what that and O leave
-- of the limit.
--
-- Sets: tokens, w…, log; mayGrant, whether there is time left to spend a grant in; leaseEnd.
-- Twin of: settle() and leaseWithin() of src/ceiling/refill/{fixed-window,sliding-log,sliding-counter}.ts.
-- Clock: `now`. Used by: ledger.lua.
if callRule <= CALENDAR then
  tokens = min(tokens, burst - outstanding)
  local cut = leaseWithin(callRule, lease, wLength, wEnd, now)
  mayGrant = cut > 0
  leaseEnd = cut < lease and wEnd or min(leaseEnd, wEnd)
elseif callRule == LOG then
  if spent > 0 then
    wCurrent = wCurrent + spent
    local time, amount = now, spent
    if #log > 0 and now - wLastFrom < ceil(wLength / 256) then
      -- With what was spent within the same 256th of a window.
      local lastTime, lastAmount = struct.unpack('>dd', log, #log - 15)
      time, amount = max(lastTime, now), lastAmount + spent
      log = string.sub(log, 1, #log - 16)
    else
      wLastFrom = now
    end
    log = log .. struct.pack('>dd', time, amount)
  end
  tokens = burst - outstanding - wCurrent
else
  wCurrent = wCurrent + spent
  local counted = wPrevious == 0 and 0 or min(wPrevious, floor(wPrevious * ((wEnd - now) / wLength)) + 1)
  tokens = burst - outstanding - wCurrent - counted
end
