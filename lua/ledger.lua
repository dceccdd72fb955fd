-- The escrow ledger of one bucket: T tokens in it, O outstanding, T + O <= B kept by every line.
--
-- Twin of: src/ceiling/ledger.ts, which has the reasons; only the sweep of ended leases differs, beyond FEW_HOLDERS.
-- Keeps: rule 8 (refill first, with the old O, then lease ends), rule 7 (creating a holder ignores `returned`), rule 4
--   (a lost grant is taken back when disowned, and only then). Clock: `now`.
-- Writes: nothing itself; holder records changed by a sweep are left in bucket.changed and bucket.dropped for lease.lua.
-- Used by: lease.lua.
--- @include "limits"
--- @include "exact"
--- @include "fence"
--- @include "records"
--- @include "allotment"

-- Up to this many holders a sweep looks at all of them at once, as the model does. Beyond it, each call looks at about
-- SWEEP_COUNT, so that none takes long: a lease that is ended late is only tokens that wait.
local FEW_HOLDERS = 128
local SWEEP_COUNT = 64

local function newBucket(fence, partition)
  return {
    level = untouchedLevel(fence),
    outstanding = 0,
    lastEnd = 0,
    sweepAt = MAX_SAFE_INTEGER,
    expiresAt = 0,
    members = 0,
    slotAt = 0,
    reservedFor = '',
    reserved = 0,
    reservedUntil = 0,
    sweepCursor = false,
    sweepNext = MAX_SAFE_INTEGER,
    version = fence.version,
    burst = fence.burst,
    rateNum = fence.rateNum,
    rateDen = fence.rateDen,
    era = partition.era,
    incarnation = now,
    longestLease = 0,
    paidUntil = 0,
    classes = {},
  }
end

local function newHolder(call)
  return {
    outstanding = call.unspent,
    seq = 0,
    lastGrant = 0,
    leaseEnd = 0,
    memberUntil = 0,
    demand = 0,
    weight = 1,
    credit = 0 / 0,
    creditAt = now,
    slotAt = 0,
  }
end

local function clampHolder(holder, latest)
  holder.leaseEnd = min(holder.leaseEnd, latest)
  holder.memberUntil = min(holder.memberUntil, latest)
  holder.creditAt = min(holder.creditAt, now)
  holder.slotAt = min(holder.slotAt, now)
end

local function latestEnd(bucket)
  return now + bucket.longestLease + leaseGrace(bucket.longestLease)
end

-- Of a rebase, what concerns the bucket; the sweep that follows at once clamps the holders.
local function rebase(bucket)
  local latest = latestEnd(bucket)
  bucket.level.at = now
  bucket.lastEnd = min(bucket.lastEnd, latest)
  bucket.slotAt = min(bucket.slotAt, now)
  bucket.paidUntil = min(bucket.paidUntil, now)
  bucket.reservedUntil = min(bucket.reservedUntil, now)
  bucket.sweepAt = now
  bucket.sweepCursor = false
end

-- Ends a holder's lease if it is over. Answers when to look again, or nothing where the record can go.
local function endLease(bucket, holder)
  local ended = holder.outstanding > 0 and holder.leaseEnd <= now
  if ended then
    bucket.outstanding = bucket.outstanding - holder.outstanding
    holder.outstanding = 0
    holder.lastGrant = 0
  end
  local recordEnd = max(holder.leaseEnd + MAX_AGE, holder.memberUntil)
  if holder.outstanding == 0 and recordEnd <= now then
    leaveMembers(bucket, holder)
    return nil, true
  end
  return holder.outstanding > 0 and holder.leaseEnd or recordEnd, ended
end

local function sweep(bucket, bucketKey, call, rebased)
  if now < bucket.sweepAt then return end
  local fields, nextCursor
  local few = bucket.members <= FEW_HOLDERS
  if few then
    fields = redis.call('HGETALL', bucketKey)
    bucket.sweepCursor = false
  else
    local page = redis.call('HSCAN', bucketKey, bucket.sweepCursor or '0', 'COUNT', SWEEP_COUNT)
    fields = page[2]
    if page[1] ~= '0' then nextCursor = page[1] end
  end
  if not bucket.sweepCursor then bucket.sweepNext = MAX_SAFE_INTEGER end
  local latest = latestEnd(bucket)
  for i = 1, #fields, 2 do
    local id = fields[i]
    if id ~= 'b' and id ~= 't' and id ~= 'c' then
      local own = id == call.holder
      local holder = own and bucket.own or unpackHolder(fields[i + 1])
      -- Where the holders are not all looked at by the call that rebased, one from before it betrays itself.
      local clamp = rebased or (not few and holder.leaseEnd > latest + MAX_SKEW)
      if clamp then clampHolder(holder, latest) end
      local nextLook, changed = endLease(bucket, holder)
      if nextLook then
        bucket.sweepNext = min(bucket.sweepNext, nextLook)
        -- The caller's own record is written in any case.
        if (changed or clamp) and not own then
          local list = bucket.changed
          list[#list + 1] = id
          list[#list + 1] = packHolder(holder)
        end
      elseif own then
        bucket.own = nil
      else
        bucket.dropped[#bucket.dropped + 1] = id
      end
    end
  end
  if nextCursor then
    bucket.sweepCursor = nextCursor
  else
    bucket.sweepAt = bucket.sweepNext
    bucket.sweepCursor = false
  end
end

local function advance(bucket, fence, partition, bucketKey, call)
  local level = bucket.level
  if bucket.era ~= partition.era then
    level.tokens = min(level.tokens, 0)
    level.remainder = 0
    level.at = max(level.at, partition.bornAt)
    bucket.era = partition.era
  end
  local rebased = level.at - now > MAX_SKEW
  if rebased then rebase(bucket) end
  refill(level, bucket, bucket.burst - bucket.outstanding)
  sweep(bucket, bucketKey, call, rebased)
  if bucket.version ~= fence.version or not sameTerms(bucket, fence) then
    local from = { burst = bucket.burst, rateNum = bucket.rateNum, rateDen = bucket.rateDen }
    bucket.version = fence.version
    bucket.burst = fence.burst
    bucket.rateNum = fence.rateNum
    bucket.rateDen = fence.rateDen
    inherit(level, from, fence, fence.inheritance, bucket.outstanding)
  end
end

-- Takes in what the holder says of itself, and answers its record, made where there is none.
local function report(bucket, call)
  local level, holder = bucket.level, bucket.own
  if holder then
    if call.disown > 0 and holder.seq >= call.disown then
      local undone = min(holder.lastGrant, holder.outstanding)
      bucket.outstanding = bucket.outstanding - undone
      holder.outstanding = holder.outstanding - undone
      level.tokens = level.tokens + undone
      holder.credit = holder.credit + undone
    end
    local credited = min(call.returned, max(0, holder.outstanding - call.unspent))
    level.tokens = level.tokens + credited
    holder.credit = holder.credit + credited
    bucket.outstanding = bucket.outstanding + (call.unspent - holder.outstanding)
    holder.outstanding = call.unspent
    leaveMembers(bucket, holder)
  else
    holder = newHolder(call)
    bucket.outstanding = bucket.outstanding + call.unspent
    bucket.own = holder
    if call.witness > 0 and call.incarnation ~= bucket.incarnation and call.certainUntil > bucket.incarnation then
      level.tokens = min(level.tokens, max(-bucket.burst, level.tokens - call.witness))
    end
  end
  holder.seq = call.seq
  holder.demand = call.demand
  holder.weight = call.weight
  joinMembers(bucket, holder)
  return holder
end

local function chargeOutage(bucket, call)
  if call.since <= 0 then return end
  local from = max(call.since, bucket.paidUntil)
  if now > from then
    local spent = ceil(((now - from) / bucket.rateDen) * bucket.rateNum)
    bucket.level.tokens = max(min(bucket.level.tokens, 0), bucket.level.tokens - spent)
  end
  bucket.paidUntil = max(bucket.paidUntil, now)
end

local function grant(bucket, holder, call, conflict)
  local allotment = allot(bucket, holder, call)
  local granted = allotment.granted
  bucket.level.tokens = bucket.level.tokens - granted
  bucket.outstanding = bucket.outstanding + granted
  holder.outstanding = holder.outstanding + granted
  holder.lastGrant = granted
  holder.granted = granted
  holder.level = allotment.level
  holder.horizon = allotment.horizon
  holder.next = allotment.next
  holder.retry = allotment.retry
  holder.giveBack = allotment.giveBack
  holder.conflict = conflict
  bucket.longestLease = max(bucket.longestLease, call.lease)
end

local function keep(bucket, holder, call)
  bucket.lastEnd = max(bucket.lastEnd, holder.leaseEnd)
  local recordEnd = max(holder.leaseEnd + MAX_AGE, holder.memberUntil)
  local nextLook = holder.outstanding > 0 and holder.leaseEnd or recordEnd
  bucket.sweepAt = min(bucket.sweepAt, nextLook)
  if bucket.sweepCursor then bucket.sweepNext = min(bucket.sweepNext, nextLook) end
  local needed = max(
    now + refillTime(bucket.burst - bucket.level.tokens, bucket),
    bucket.lastEnd + max(refillTime(bucket.outstanding, bucket), MAX_AGE),
    call.since > 0 and bucket.paidUntil or 0
  )
  if needed > bucket.expiresAt then
    bucket.expiresAt = needed + KEEP_LONGER
    return true
  end
  return false
end
