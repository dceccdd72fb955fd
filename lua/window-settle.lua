-- Part of the body of lease.lua: takes in what this call counts as spent (`spent`) and takes back (`refund`), and holds T
-- to what that and O leave of the limit.
--
-- Sets: tokens, w…, log; mayGrant, whether there is time left to spend a grant in; leaseEnd.
-- Twin of: settle() and leaseWithin() of src/ceiling/refill/{fixed-window,sliding-log,sliding-counter}.ts.
-- Clock: `now`. Used by: ledger.lua.
if callRule <= CALENDAR then
  if refundSince == 0 or refundSince >= wStart then tokens = tokens + refund end
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
  local place = 1
  while refund > 0 and place < #log do
    -- The oldest entries that it can be in.
    local time, amount = struct.unpack('>dd', log, place)
    if time >= refundSince then
      local part = min(refund, amount)
      log = string.sub(log, 1, place - 1) .. struct.pack('>dd', time, amount - part) .. string.sub(log, place + 16)
      wCurrent = wCurrent - part
      refund = refund - part
    end
    place = place + 16
  end
  tokens = burst - outstanding - wCurrent
else
  local before = refundSince < wStart and min(refund, wPrevious) or 0
  wPrevious = wPrevious - before
  wCurrent = wCurrent + spent
  wCurrent = wCurrent - min(refund - before, wCurrent)
  local counted = wPrevious == 0 and 0 or min(wPrevious, floor(wPrevious * ((wEnd - now) / wLength)) + 1)
  tokens = burst - outstanding - wCurrent - counted
end
