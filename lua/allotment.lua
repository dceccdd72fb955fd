-- Who gets how much: chooses a grant between 0 and T, by the fair level. It can't break the ceiling.
--
-- Twin of: src/ceiling/allotment.ts, statement for statement and with the same floating-point operations in the same
--   order; to change one is to change the other. Demand classes are a flat list here, sorted: class, demand, weight, …
-- Clock: `now`. Writes nothing; changes `bucket` and `holder` in memory. Used by: ledger.lua, lease.lua.
local HORIZON = 250000
local CALLS_PER_SECOND = 11000
local HORIZON_OF_FILL = 2.5
local FEW_TOKENS = 1500000
local TURNS_REMEMBERED = 3

local function whole(amount)
  if amount > 0 then return floor(amount / MICRO) * MICRO end
  return 0
end

local function demandClass(demand)
  if demand < 1 then return 0 end
  local index, rest = 1, demand
  while rest >= 65536 do
    rest = rest / 65536
    index = index + 64
  end
  while rest >= 2 do
    rest = rest / 2
    index = index + 4
  end
  if rest >= 1.681792830507429 then return index + 3 end
  if rest >= 1.4142135623730951 then return index + 2 end
  if rest >= 1.189207115002721 then return index + 1 end
  return index
end

-- Where class `index` is in the list, or would have to be put; and whether it is there.
local function placeOf(classes, index)
  local place = 1
  while classes[place] and classes[place] < index do place = place + 3 end
  return place, classes[place] == index
end

local function joinMembers(bucket, holder)
  local classes = bucket.classes
  local index = demandClass(holder.demand / holder.weight)
  local place, known = placeOf(classes, index)
  if known then
    classes[place + 1] = classes[place + 1] + holder.demand
    classes[place + 2] = classes[place + 2] + holder.weight
  else
    for i = #classes, place, -1 do classes[i + 3] = classes[i] end
    classes[place], classes[place + 1], classes[place + 2] = index, holder.demand, holder.weight
  end
  bucket.members = bucket.members + 1
end

local function leaveMembers(bucket, holder)
  local classes = bucket.classes
  local place, known = placeOf(classes, demandClass(holder.demand / holder.weight))
  if known then
    classes[place + 1] = classes[place + 1] - holder.demand
    classes[place + 2] = classes[place + 2] - holder.weight
    if classes[place + 2] <= 0 then
      for i = place, #classes do classes[i] = classes[i + 3] end
    end
  end
  bucket.members = bucket.members - 1
end

local function fairLevel(bucket, rate)
  local classes = bucket.classes
  local left, weight, demand = rate, 0, 0
  for i = 1, #classes, 3 do
    weight = weight + classes[i + 2]
    demand = demand + classes[i + 1]
  end
  if demand <= rate then return 0 end
  for i = 1, #classes, 3 do
    if (classes[i + 1] / classes[i + 2]) * weight > left then break end
    left = left - classes[i + 1]
    weight = weight - classes[i + 2]
  end
  return left / weight
end

local function totalWeight(bucket)
  local weight = 0
  for i = 3, #bucket.classes, 3 do weight = weight + bucket.classes[i] end
  return weight
end

local function horizonOf(bucket)
  local spaced = (bucket.members / CALLS_PER_SECOND) * MICRO
  local fill = (bucket.burst / bucket.rateNum) * bucket.rateDen
  return max(1, floor(min(max(HORIZON, spaced), fill / HORIZON_OF_FILL)))
end

local function earn(holder, share, batch)
  if holder.credit ~= holder.credit then holder.credit = batch end
  local elapsed = max(0, now - holder.creditAt)
  holder.credit = min(max(MICRO, 2 * batch), holder.credit + (share * elapsed) / MICRO)
  holder.creditAt = now
end

local function availableTo(bucket, call)
  if bucket.reservedFor ~= '' and bucket.reservedUntil <= now then bucket.reservedFor = '' end
  local kept = 0
  if bucket.reservedFor ~= '' and bucket.reservedFor ~= call.holder then kept = bucket.reserved end
  return max(0, bucket.level.tokens - kept)
end

local function reserve(bucket, call)
  if bucket.reservedFor == call.holder then
    bucket.reserved = call.head
  elseif bucket.reservedFor == '' and call.head > bucket.burst - bucket.outstanding then
    bucket.reservedFor = call.holder
    bucket.reserved = call.head
    bucket.reservedUntil = now + 2 * refillTime(bucket.burst, bucket)
  end
end

local function slot(bucket, holder, call)
  if holder.slotAt > now then return holder.slotAt end
  local each = refillTime(max(call.head, 1), bucket)
  bucket.slotAt = min(max(bucket.slotAt, now) + each, now + min(LONGEST, bucket.members * each))
  holder.slotAt = bucket.slotAt
  return holder.slotAt
end

local function allot(bucket, holder, call)
  local rate = (bucket.rateNum / bucket.rateDen) * MICRO
  local horizon = horizonOf(bucket)
  local level = fairLevel(bucket, rate)
  local share = level > 0 and level * holder.weight or (rate * holder.weight) / totalWeight(bucket)
  local batch = (share * horizon) / MICRO
  local few = level > 0 and batch < FEW_TOKENS
  holder.memberUntil = max(
    now + call.lease + leaseGrace(call.lease),
    now + min(LONGEST, ceil((TURNS_REMEMBERED * MICRO * MICRO) / share))
  )
  earn(holder, share, batch)

  local available = availableTo(bucket, call)
  local ask = call.need + call.want
  local need = available >= call.head and min(call.need, available) or 0
  local granted
  if level == 0 then
    granted = max(need, min(ask, whole(available / (bucket.members + 1))))
  elseif few then
    granted = min(need, max(call.head, MICRO))
  else
    local surplus = whole((available - 2 * batch) / (bucket.members + 1))
    local entitled = min(ask, available, max(whole(holder.credit), surplus))
    granted = entitled >= call.head and max(0, entitled) or 0
  end
  if bucket.reservedFor ~= '' and bucket.reservedFor ~= call.holder then granted = min(granted, need) end
  if level > 0 and not few and granted >= whole(available) and holder.credit > granted then
    holder.credit = granted
  end
  holder.credit = holder.credit - granted

  local unmet = granted < call.head
  if unmet then
    reserve(bucket, call)
  elseif bucket.reservedFor == call.holder then
    bucket.reservedFor = ''
  end
  local short = refillTime(call.head - bucket.level.tokens, bucket)
  local next = 0
  if level > 0 and not few then
    if granted < ask then next = max(1, min(LONGEST, ceil(((batch - holder.credit) / share) * MICRO))) end
    if granted > 0 then next = min(next, horizon) end
  elseif unmet then
    next = slot(bucket, holder, call) - now
  end
  if unmet then next = max(next, short) end
  return {
    granted = granted,
    level = min(floor(level), MAX_SAFE_INTEGER),
    horizon = horizon,
    next = next,
    retry = unmet and max(next, short) or 0,
    giveBack = bucket.reservedFor ~= '' and bucket.reservedFor ~= call.holder,
  }
end
