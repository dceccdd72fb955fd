-- How the ledger is kept in Redis: what is packed into which field, and back.
--
-- Header hash {hg:<p>}:h, no expiry:
--   h                 bornAt µs, era, replication id of the server that last answered ('' unknown)
--   f:<fence>         version, burst, rateNum, rateDen, inheritance, resetAt, assertedAt, untouched tokens, remainder, at
-- Bucket hash {hg:<p>}:b:<policy>:<key>, expires:
--   b                 what moves with each call: at µs, then tokens, remainder, outstanding, and moments relative to at
--   t                 what rarely moves: the terms it counts under, era, birth, longest lease
--   c                 demand classes, flat: class, demand, weight, …
--   <holder id>       one record a holder; ids have 16 characters, so that none is a field of the bucket itself
-- Everything is MessagePack: whole numbers take 1 to 9 bytes, others are doubles, and both come back exactly. Each field
-- stays below 65 bytes for usual numbers, which keeps a hash of up to 128 fields in its small encoding.
--
-- Clock: none. Writes nothing. Used by: ledger.lua, lease.lua.
local pack, unpackMessage = cmsgpack.pack, cmsgpack.unpack

local function packPartition(partition)
  return pack(partition.bornAt, partition.era, partition.server)
end

local function unpackPartition(packed)
  local bornAt, era, server = unpackMessage(packed)
  return { bornAt = bornAt, era = era, server = server }
end

local function packFence(fence)
  local untouched = fence.untouched
  return pack(
    fence.version, fence.burst, fence.rateNum, fence.rateDen, fence.inheritance, fence.resetAt, fence.assertedAt,
    untouched.tokens, untouched.remainder, untouched.at
  )
end

local function unpackFence(packed)
  local version, burst, rateNum, rateDen, inheritance, resetAt, assertedAt, tokens, remainder, at =
    unpackMessage(packed)
  return {
    version = version,
    burst = burst,
    rateNum = rateNum,
    rateDen = rateDen,
    inheritance = inheritance,
    resetAt = resetAt,
    assertedAt = assertedAt,
    untouched = { tokens = tokens, remainder = remainder, at = at },
  }
end

local function packTerms(bucket)
  return pack(
    bucket.version, bucket.burst, bucket.rateNum, bucket.rateDen, bucket.era, bucket.incarnation,
    bucket.longestLease, bucket.paidUntil
  )
end

-- A moment that may be "never" (0), relative to `at`.
local function packMoment(moment, at)
  return moment ~= 0 and moment - at
end

local function unpackMoment(packed, at)
  return packed and packed + at or 0
end

local function packMain(bucket)
  local level = bucket.level
  local at = level.at
  return pack(
    at, level.tokens, level.remainder, bucket.outstanding, bucket.lastEnd - at, bucket.sweepAt - at,
    bucket.expiresAt - at, bucket.members, packMoment(bucket.slotAt, at), bucket.reservedFor,
    bucket.reservedFor ~= '' and bucket.reserved, bucket.reservedFor ~= '' and bucket.reservedUntil - at,
    bucket.sweepCursor, bucket.sweepCursor and bucket.sweepNext - at
  )
end

local function packClasses(bucket)
  return pack(unpack(bucket.classes))
end

local function unpackBucket(main, terms, classes)
  local at, tokens, remainder, outstanding, lastEnd, sweepAt, expiresAt, members, slotAt, reservedFor, reserved,
    reservedUntil, sweepCursor, sweepNext = unpackMessage(main)
  local version, burst, rateNum, rateDen, era, incarnation, longestLease, paidUntil = unpackMessage(terms)
  return {
    level = { tokens = tokens, remainder = remainder, at = at },
    outstanding = outstanding,
    lastEnd = lastEnd + at,
    sweepAt = sweepAt + at,
    expiresAt = expiresAt + at,
    members = members,
    slotAt = unpackMoment(slotAt, at),
    reservedFor = reservedFor,
    reserved = reserved or 0,
    reservedUntil = reservedUntil and reservedUntil + at or 0,
    sweepCursor = sweepCursor,
    sweepNext = sweepNext and sweepNext + at or MAX_SAFE_INTEGER,
    version = version,
    burst = burst,
    rateNum = rateNum,
    rateDen = rateDen,
    era = era,
    incarnation = incarnation,
    longestLease = longestLease,
    paidUntil = paidUntil,
    classes = { unpackMessage(classes) },
  }
end

local function packHolder(holder)
  local at = holder.creditAt
  local flags = (holder.giveBack and 1 or 0) + (holder.conflict and 2 or 0) + (holder.lastGrant == 0 and 4 or 0)
  return pack(
    at, holder.outstanding, holder.seq, holder.leaseEnd - at, holder.memberUntil - holder.leaseEnd, holder.demand,
    holder.weight, holder.credit, packMoment(holder.slotAt, at), holder.granted, holder.level, holder.horizon,
    holder.next, holder.retry - holder.next, flags
  )
end

local function unpackHolder(packed)
  local at, outstanding, seq, leaseEnd, memberUntil, demand, weight, credit, slotAt, granted, level, horizon, next,
    retry, flags = unpackMessage(packed)
  leaseEnd = leaseEnd + at
  return {
    outstanding = outstanding,
    seq = seq,
    lastGrant = flags < 4 and granted or 0,
    leaseEnd = leaseEnd,
    memberUntil = memberUntil + leaseEnd,
    demand = demand,
    weight = weight,
    credit = credit,
    creditAt = at,
    slotAt = unpackMoment(slotAt, at),
    granted = granted,
    level = level,
    horizon = horizon,
    next = next,
    retry = retry + next,
    giveBack = flags % 2 == 1,
    conflict = flags % 4 >= 2,
  }
end
