-- Part of the body of lease.lua. Who gets how much: chooses a grant between 0 and T, by the fair level. It can't break
-- the ceiling.
--
-- Sets: hGranted and the other parts of the reply, the caller's credit, slot and membership, reserved….
-- Twin of: src/ceiling/allotment.ts, statement for statement and with the same floating-point operations in the same
--   order; to change one is to change the other. Clock: `now`. Used by: lease.lua.
local rate = (rateNum / rateDen) * MICRO
local horizon = max(1, floor(min(
  max(250000, (members / 11000) * MICRO),
  ((burst / rateNum) * rateDen) / 2.5
)))
local level, totalWeight = fairLevel(classes, rate)
local share = level > 0 and level * hWeight or (rate * hWeight) / totalWeight
local batch = (share * horizon) / MICRO
local fewTokens = level > 0 and batch < 1500000
hMemberUntil = max(now + lease + leaseGrace(lease), now + min(LONGEST, ceil((3 * MICRO * MICRO) / share)))

-- Entitlement grows at the share, up to two batches, and never less than a token or what is waited for.
if hCredit ~= hCredit then hCredit = batch end
hCredit = min(max(MICRO, 2 * batch, head), hCredit + (share * max(0, now - hCreditAt)) / MICRO)
hCreditAt = now
-- With nobody to share with there is nothing to be fair about.
local alone = members == 1

if reservedFor ~= '' and reservedUntil <= now then reservedFor = '' end
local available = tokens
if reservedFor ~= '' and reservedFor ~= holderId then available = tokens - reserved end
available = max(0, available)
local ask = need + want
local enough = available >= head
local needed = enough and min(need, available) or 0
local granted
if level == 0 then
  granted = enough and max(needed, min(ask, floor((available / (members + 1)) / MICRO) * MICRO)) or 0
elseif fewTokens then
  granted = min(needed, max(head, MICRO))
else
  local surplus = max(0, floor(((available - 2 * batch) / (members + 1)) / MICRO) * MICRO)
  local entitled = min(ask, available, max(max(0, floor(hCredit / MICRO) * MICRO), surplus, alone and needed or 0))
  granted = entitled >= head and max(0, entitled) or 0
end
if reservedFor ~= '' and reservedFor ~= holderId then granted = min(granted, needed) end
if level > 0 and not fewTokens and granted >= floor(available / MICRO) * MICRO and hCredit > granted then
  hCredit = granted
end
hCredit = hCredit - granted
if alone and hCredit < 0 then hCredit = 0 end

local unmet = granted < head
if unmet then
  if reservedFor == holderId then
    reserved = head
  elseif reservedFor == '' and head > burst - outstanding then
    reservedFor = holderId
    reserved = head
    reservedUntil = now + 2 * refillTime(burst, rateNum, rateDen)
  end
elseif reservedFor == holderId then
  reservedFor = ''
end

local next = 0
if level > 0 and not fewTokens then
  local worth = batch
  if unmet and not alone then worth = max(batch, head) end
  if granted < ask then next = max(1, min(LONGEST, ceil(((worth - hCredit) / share) * MICRO))) end
  if granted > 0 then next = min(next, horizon) end
elseif unmet and not alone then
  if hSlotAt <= now then
    local each = refillTime(max(head, 1), rateNum, rateDen)
    slotAt = min(max(slotAt, now) + each, now + min(LONGEST, members * each))
    hSlotAt = slotAt
  end
  next = hSlotAt - now
end
local retry = 0
if unmet then
  local short = refillTime(head - tokens, rateNum, rateDen)
  next = max(next, short)
  retry = alone and short or next
end

hGranted = granted
hLevel = min(floor(level), MAX_SAFE_INTEGER)
hHorizon = horizon
hNext = next
hRetry = retry
hGiveBack = reservedFor ~= '' and reservedFor ~= holderId
