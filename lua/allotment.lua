-- Part of the body of lease.lua. Who gets how much: chooses a grant between 0 and T, by the fair level. It can't break
-- the ceiling.
--
-- Sets: hGranted and the other parts of the reply, the caller's credit, slot and membership, reserved….
-- Twin of: src/ceiling/allotment.ts, statement for statement and with the same floating-point operations in the same
--   order; to change one is to change the other. Clock: `now`. Used by: lease.lua.
local rate = (rateNum / rateDen) * MICRO
local horizon = max(1, floor(min(
  max(300000, (members / 11000) * MICRO),
  ((burst / rateNum) * rateDen) / 2
)))
local level, totalWeight, hungry, asked = fairLevel(classes, rate)
local part = level > 0 and level * hWeight or (rate * hWeight) / totalWeight
local share = max(part, rate / (10 * members))
local batch = (share * horizon) / MICRO
local fewTokens = level > 0 and batch < max(1500000, 1.5 * head)
hMemberUntil = max(now + lease + leaseGrace(lease), now + min(LONGEST, ceil((3 * MICRO * MICRO) / share)))

-- Entitlement grows at the share, up to two batches, and never less than a token or what is waited for.
if hCredit ~= hCredit then hCredit = batch end
hCredit = min(max(MICRO, 2 * batch, head), hCredit + (share * max(0, now - hCreditAt)) / MICRO)
hCreditAt = now
local lent = reservedFor == holderId
-- With nobody to share with there is nothing to be fair about.
local alone = members == 1
-- Where all tokens come back at one moment, there is nothing to be kept for somebody's turn.
local atOnce = callRule ~= 0 and callRule <= CALENDAR

local ask, granted = need + want, 0
do
  -- T, less what is being saved for another holder's large need.
  if reservedFor ~= '' and reservedUntil <= now then reservedFor = '' end
  local available = tokens
  if reservedFor ~= '' and reservedFor ~= holderId then
    local since = now - (reservedUntil - 2 * refillTime(burst, rateNum, rateDen))
    local saved = floor(((since / rateDen) * rateNum) / 1.4)
    available = tokens - min(reserved, saved)
  end
  available = mayGrant and max(0, available) or 0
  local enough = available >= head
  local needed = enough and min(need, available) or 0
  -- A bucket that is full loses what is refilled: then nobody has to be held to a share.
  local fill = available / max(1, burst - outstanding)
  local free = alone or fill >= 1
  if level == 0 then
    granted = enough and max(needed, min(ask, floor((available / (members + 1)) / MICRO) * MICRO)) or 0
  elseif fewTokens then
    local kept = not atOnce and refillTime(burst, rateNum, rateDen) <= 60000000
    local least = max(head, MICRO)
    local turn = not kept or slotAt <= now or hCredit >= least * (1 - 5 * fill)
    if available >= need + MICRO * (members - 1) then
      granted = needed
    else
      granted = (turn or free or lent) and min(needed, least) or 0
    end
  else
    local reserve = batch + ((rate - level * hungry) * horizon) / (4 * MICRO)
    local surplus = max(0, floor((((available - reserve) * hWeight) / (hungry / 2 + hWeight)) / MICRO) * MICRO)
    local earned = max(0, floor(hCredit / MICRO) * MICRO)
    local whollyIts = alone and callRule == 0
    local freely = whollyIts and ask or free and needed or 0
    local most = whollyIts and max(needed, floor(available / MICRO) * MICRO) or available
    local entitled = min(ask, most, max(earned, surplus, freely, lent and head or 0))
    granted = entitled >= head and max(0, entitled) or 0
  end
  if reservedFor ~= '' and reservedFor ~= holderId then granted = min(granted, needed) end
  -- Under the strict rule, what nobody waits for stays within its part of the burst.
  if guardUntil > 0 and callRule == 0 then
    granted = min(granted, max(needed, floor((heldReady(burst) - outstanding) / MICRO) * MICRO))
  end
  if level > 0 and not fewTokens and granted >= floor(available / MICRO) * MICRO and hCredit > granted then
    hCredit = granted
  end
end
hCredit = hCredit - granted
if (alone or level == 0) and hCredit < 0 then hCredit = 0 end

local unmet = granted < head
if unmet then
  -- Saves for a need that neither the others leave nor the holder's share earns in the time to fill the bucket.
  if reservedFor == holderId then reserved = head end
  if not atOnce and reservedFor == '' and hCredit >= 0 and head > 1500000 then
    local fillTime = refillTime(burst, rateNum, rateDen)
    local slow = ((head - hCredit) / share) * MICRO > fillTime and 4 * head > burst
    if slow or head > burst - outstanding then
      reservedFor = holderId
      reserved = head
      reservedUntil = now + 2 * fillTime
    end
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
elseif unmet and not alone and not atOnce then
  if hSlotAt <= now then
    local each = refillTime(max(head, 1), rateNum, rateDen)
    slotAt = min(max(slotAt, now) + each, now + min(LONGEST, members * each))
    hSlotAt = slotAt
  end
  next = hSlotAt - now
end
local retry = 0
if unmet and reservedFor == holderId then next = floor(horizon / 8) end
if unmet then
  local short
  if callRule == 0 then
    short = refillTime(head - tokens, rateNum, rateDen)
    if now < guardUntil then
      local guarded = burst - heldReady(burst)
      if head > guarded then short = max(short, guardUntil - now + refillTime(head - guarded, rateNum, rateDen)) end
    end
  else
--- @include "window-wait"
  end
  next = max(next, short)
  retry = alone and short or next
end

hGranted = granted
hLevel = min(floor(level), MAX_SAFE_INTEGER)
-- What is held ready may be as much as if most of the rate were asked for: the less is, the longer it lasts.
hHorizon = horizon
if callRule == 0 then hHorizon = max(horizon, floor(min(60000000, horizon * max(1, (0.8 * rate) / max(1, asked))))) end
hNext = next
hRetry = retry
hGiveBack = reservedFor ~= '' and reservedFor ~= holderId
