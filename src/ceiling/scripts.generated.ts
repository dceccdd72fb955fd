// Generated from lua/ by scripts/embed-lua.mjs. Do not edit: change the Lua and run `npm run embed-lua`.

/** A Lua script as Redis runs it. */
export interface EmbeddedScript {
  readonly name: string;
  /** What EVALSHA is called with: the SHA-1 of `source`, in hex. */
  readonly sha1: string;
  readonly source: string;
}

export const leaseScript: EmbeddedScript = {
  name: 'lease',
  sha1: '8e84c25f6d7af468b752e0a9722feec995fdeb89',
  source: `-- Executes a tick's worth of lease calls of one limiter: each reports, takes back, returns and is granted tokens.
--
-- KEYS[2i-1]  hash  {hg:<p>}:h                    header of the partition of call i
-- KEYS[2i]    hash  {hg:<p>}:b:<policy>:<key>     bucket of call i
-- ARGV[1]     new era     identity for a header that has to be made, or that is suspected to be stale; random
-- ARGV[2]     identify    '1': notice that the data may be stale (server.lua); '0': the user may not call INFO
-- ARGV[3]     new store   'empty' | 'full': whether buckets of a store without data start so
-- then STRIDE arguments a call, in the order of readCall below: three strings, then whole numbers from 0 up to 2^53;
--   tokens in micro-tokens, times and spans in microseconds (src/ceiling/ceiling-store.ts has what each means)
-- Returns one array a call: status (0 granted, 1 stale, 2 refused), seq, now µs, era, version, burst µtok, rateNum,
--   rateDen; where granted also: granted µtok, fair level µtok/s, horizon µs, next µs, retry µs, flags (1 give back,
--   2 conflict), incarnation µs, certainUntil µs. Whole; above 2^53 - 64 as text, which clients do not round.
--
-- Keeps: T + O <= B in every bucket. A call answered stale, repeated or refused writes nothing of its bucket; it may
--   move the fence (rule 10). Clock: Redis TIME, once. Expiry: the bucket's, which is when it has become the same as an
--   untouched one (rule 11), written when it moves; the header's never.
-- Caller: src/ceiling/redis-ceiling.ts. Model: src/ceiling/ledger.ts.
local NEW_ERA, IDENTIFY, NEW_STORE = ARGV[1], ARGV[2] == '1', ARGV[3]
local PREAMBLE, STRIDE = 3, 22
-- The store's clock, read once a script: what everything in it is dated with.
--
-- Provides: \`now\`, microseconds since the Unix epoch, whole. Clock: Redis TIME, which is wall time and may step; on
--   Redis 7.0 it moves even within a script, so nothing else may read it.
-- Used by: lease.lua, heartbeat.lua. Tests put clock-from-argument.lua in its place.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
-- Who answers: tells data that may be stale (a promoted replica, a server that came back without its last writes).
--
-- Provides: \`SERVER\`, the server's replication id: random, another one after each start and each promotion; '' where
--   INFO does not say or may not be called (then IDENTIFY is false, so that nothing is tried and logged in vain).
-- Read by the script itself, and not once a connection by the client: what a client re-sends after a reconnect runs on
--   the server it did not mean. Costs 2 to 3 µs a script. Writes nothing. Clock: none.
-- Used by: lease.lua. Tests put server-from-argument.lua in its place.
local SERVER = ''
if IDENTIFY then
  local info = redis.pcall('INFO', 'replication')
  if type(info) == 'string' then SERVER = string.match(info, 'master_replid:(%x+)') or '' end
end
-- The escrow ledger of one bucket: T tokens in it, O outstanding, T + O <= B kept by every line.
--
-- Twin of: src/ceiling/ledger.ts, which has the reasons; only the sweep of ended leases differs, beyond FEW_HOLDERS.
-- Keeps: rule 8 (refill first, with the old O, then lease ends), rule 7 (creating a holder ignores \`returned\`), rule 4
--   (a lost grant is taken back when disowned, and only then). Clock: \`now\`.
-- Writes: nothing itself; holder records changed by a sweep are left in bucket.changed and bucket.dropped for lease.lua.
-- Used by: lease.lua.
-- Constants that the ledger and its callers agree on. Microseconds and micro-tokens.
--
-- Twin of: the constants of src/ceiling/{ceiling-store,exact,fence,ledger}.ts; test/lua holds them against each other.
-- Used by: every fragment of lease.lua.
local MICRO = 1000000
local MAX_SKEW = 100000
local MAX_AGE = 250000
local KEEP_LONGER = 1000000
local CONTEST = 60000000
local ASSERT_EVERY = 5000000
local LONGEST = 2251799813685248
local MAX_SAFE_INTEGER = 9007199254740991

local floor, ceil, min, max, fmod = math.floor, math.ceil, math.min, math.max, math.fmod

local function leaseGrace(lease)
  return ceil(lease / 100) + MAX_SKEW
end
-- Exact whole-number arithmetic on tokens and time, and the one refill function.
--
-- Keeps: no number passes 2^53 unless it is thrown away; cutting a span in pieces changes nothing (rule 12); time that
--   went backwards pays nothing. \`a % b\` of Lua 5.1 rounds, so remainders are math.fmod and quotients (a - r) / b.
-- Twin of: src/ceiling/exact.ts, which has the reasons. Clock: \`now\` as given. Writes nothing.
-- Used by: fence.lua, allotment.lua, ledger.lua.

-- a * b + carry over divisor: quotient, remainder. Whole, not negative; divisor and carry below 2^52.
local function multiplyDivide(a, b, divisor, carry)
  local rest = fmod(a, divisor)
  local whole = ((a - rest) / divisor) * b
  local product = rest * b + carry
  if product <= MAX_SAFE_INTEGER then
    local remainder = fmod(product, divisor)
    return whole + (product - remainder) / divisor, remainder
  end
  local quotient, remainder, left, bit = 0, 0, b, 4503599627370496
  while bit >= 1 do
    quotient = quotient * 2
    remainder = remainder * 2
    if remainder >= divisor then
      remainder = remainder - divisor
      quotient = quotient + 1
    end
    if left >= bit then
      left = left - bit
      remainder = remainder + rest
      if remainder >= divisor then
        remainder = remainder - divisor
        quotient = quotient + 1
      end
    end
    bit = bit / 2
  end
  remainder = remainder + carry
  if remainder >= divisor then
    remainder = remainder - divisor
    quotient = quotient + 1
  end
  return whole + quotient, remainder
end

local function capAt(level, cap)
  if level.tokens < cap or (level.tokens == cap and level.at > now) then return end
  level.tokens = cap
  level.remainder = 0
  if level.at <= now then level.at = now + 1 end
end

local function refill(level, terms, cap)
  local elapsed = now - level.at
  if elapsed > 0 then
    local room = cap - level.tokens
    local about = (elapsed / terms.rateDen) * terms.rateNum
    if about > room * 1.001 + 1 then
      level.tokens = cap + 1
    else
      local gained, remainder = multiplyDivide(elapsed, terms.rateNum, terms.rateDen, level.remainder)
      level.tokens = level.tokens + gained
      level.remainder = remainder
    end
    level.at = now
  end
  capAt(level, cap)
end

local function refillTime(missing, terms)
  if missing <= 0 then return 0 end
  return min(LONGEST, ceil((missing / terms.rateNum) * terms.rateDen) + 1)
end
-- The terms in force for a policy in a partition, and the level of a bucket nobody has touched under them.
--
-- Keeps: a higher version takes over at once, a lower one changes nothing, under the same version the stricter rate and
--   burst win; a bucket that is carried over never holds more than its new burst less what is outstanding.
-- Twin of: src/ceiling/fence.ts, which has the reasons. Clock: \`now\`. Writes nothing; whoever calls writes the header
--   when told that it changed. Used by: ledger.lua, lease.lua.

local function sameRate(a, b)
  return a.rateNum == b.rateNum and a.rateDen == b.rateDen
end

local function sameTerms(a, b)
  return a.burst == b.burst and sameRate(a, b)
end

local function inherit(level, from, to, inheritance, outstanding)
  if inheritance == 'proportional' and level.tokens > 0 then
    level.tokens = multiplyDivide(level.tokens, to.burst, from.burst, 0)
  elseif inheritance == 'additive' then
    level.tokens = level.tokens + (to.burst - from.burst)
  elseif inheritance == 'reset' then
    level.tokens = max(level.tokens, 0) + to.burst
  end
  level.remainder = 0
  capAt(level, to.burst - outstanding)
end

local function changeTerms(fence, burst, rateNum, rateDen)
  local from = { burst = fence.burst, rateNum = fence.rateNum, rateDen = fence.rateDen }
  refill(fence.untouched, from, from.burst)
  fence.burst = burst
  fence.rateNum = rateNum
  fence.rateDen = rateDen
  inherit(fence.untouched, from, fence, fence.inheritance, 0)
end

local function newFence(call, bornAt)
  local fence = {
    version = call.version,
    burst = call.burst,
    rateNum = call.rateNum,
    rateDen = call.rateDen,
    inheritance = call.inheritance,
    resetAt = 0,
    assertedAt = 0,
    untouched = { tokens = NEW_STORE == 'full' and call.burst or 0, remainder = 0, at = min(bornAt, now) },
  }
  refill(fence.untouched, fence, fence.burst)
  return fence
end

local function untouchedLevel(fence)
  local untouched = fence.untouched
  local level = { tokens = untouched.tokens, remainder = untouched.remainder, at = untouched.at }
  refill(level, fence, fence.burst)
  return level
end

local function stepBack(fence)
  local changed = false
  if fence.assertedAt > now then
    fence.assertedAt = now
    changed = true
  end
  if fence.resetAt > now then
    fence.resetAt = now
    changed = true
  end
  if fence.untouched.at - now <= MAX_SKEW then return changed end
  fence.untouched.at = now
  return true
end

-- Answers whether the fence changed, and whether terms of one version disagree.
local function meetFence(fence, call)
  local changed = stepBack(fence)
  if call.version > fence.version then
    local inheritance = call.inheritance
    if inheritance == 'reset' then
      if fence.resetAt > 0 and now - fence.resetAt < refillTime(call.burst, call) then
        inheritance = 'as-is'
      else
        fence.resetAt = now
      end
    end
    fence.version = call.version
    fence.assertedAt = 0
    fence.inheritance = inheritance
    changeTerms(fence, call.burst, call.rateNum, call.rateDen)
    return true, false
  end
  if call.version < fence.version or sameTerms(fence, call) then
    if call.version == fence.version and fence.assertedAt > 0 and now - fence.assertedAt > ASSERT_EVERY then
      fence.assertedAt = now
      changed = true
    end
    return changed, false
  end
  local slower = call.rateNum / call.rateDen < fence.rateNum / fence.rateDen
  local smaller = call.burst < fence.burst
  if slower or smaller then
    fence.assertedAt = now
    fence.inheritance = 'as-is'
    local rate = slower and call or fence
    changeTerms(fence, smaller and call.burst or fence.burst, rate.rateNum, rate.rateDen)
    return true, true
  end
  local standsForPart = call.burst == fence.burst or sameRate(fence, call)
  if fence.assertedAt == 0 or standsForPart then
    if fence.assertedAt == 0 or now - fence.assertedAt > ASSERT_EVERY then
      fence.assertedAt = now
      changed = true
    end
  elseif now - fence.assertedAt > CONTEST then
    fence.assertedAt = 0
    fence.inheritance = 'as-is'
    changeTerms(fence, call.burst, call.rateNum, call.rateDen)
    return true, false
  end
  return changed, true
end
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

-- A moment that may be "never" (0), relative to \`at\`.
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
-- Who gets how much: chooses a grant between 0 and T, by the fair level. It can't break the ceiling.
--
-- Twin of: src/ceiling/allotment.ts, statement for statement and with the same floating-point operations in the same
--   order; to change one is to change the other. Demand classes are a flat list here, sorted: class, demand, weight, …
-- Clock: \`now\`. Writes nothing; changes \`bucket\` and \`holder\` in memory. Used by: ledger.lua, lease.lua.
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

-- Where class \`index\` is in the list, or would have to be put; and whether it is there.
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

local function readCall(base)
  -- Arithmetic turns the text into numbers, at half the cost of tonumber(); the caller has checked that they are.
  return {
    fence = ARGV[base + 1],
    holder = ARGV[base + 2],
    inheritance = ARGV[base + 3],
    version = ARGV[base + 4] + 0,
    burst = ARGV[base + 5] + 0,
    rateNum = ARGV[base + 6] + 0,
    rateDen = ARGV[base + 7] + 0,
    seq = ARGV[base + 8] + 0,
    disown = ARGV[base + 9] + 0,
    unspent = ARGV[base + 10] + 0,
    returned = ARGV[base + 11] + 0,
    need = ARGV[base + 12] + 0,
    head = ARGV[base + 13] + 0,
    want = ARGV[base + 14] + 0,
    demand = ARGV[base + 15] + 0,
    weight = ARGV[base + 16] + 0,
    lease = ARGV[base + 17] + 0,
    sentAt = ARGV[base + 18] + 0,
    since = ARGV[base + 19] + 0,
    witness = ARGV[base + 20] + 0,
    incarnation = ARGV[base + 21] + 0,
    certainUntil = ARGV[base + 22] + 0,
  }
end

-- Another server answers than the last time, so this data may be older than what was granted: a new era begins now.
local function suspect(headerKey, partition)
  partition.era = NEW_ERA
  partition.bornAt = now
  partition.server = SERVER
  local write = { 'HSET', headerKey, 'h', packPartition(partition) }
  local fields = redis.call('HGETALL', headerKey)
  for i = 1, #fields, 2 do
    if fields[i] ~= 'h' then
      local fence = unpackFence(fields[i + 1])
      fence.untouched.tokens = min(fence.untouched.tokens, 0)
      fence.untouched.remainder = 0
      fence.untouched.at = now
      write[#write + 1] = fields[i]
      write[#write + 1] = packFence(fence)
    end
  end
  redis.call(unpack(write))
end

-- The partition, the call's fence brought up to the call, and whether terms of one version disagree.
local function readHeader(headerKey, call)
  local fenceField = 'f:' .. call.fence
  local stored = redis.call('HMGET', headerKey, 'h', fenceField)
  local partition, packedFence, newPartition = nil, stored[2], nil
  if stored[1] then
    partition = unpackPartition(stored[1])
    if SERVER ~= '' and partition.server ~= SERVER then
      if partition.server == '' then
        partition.server = SERVER
        newPartition = true
      else
        suspect(headerKey, partition)
        packedFence = redis.call('HGET', headerKey, fenceField)
      end
    end
  else
    partition = { bornAt = now, era = NEW_ERA, server = SERVER }
    newPartition = true
  end

  local fence, changed, conflict
  if packedFence then
    fence = unpackFence(packedFence)
    changed, conflict = meetFence(fence, call)
  else
    fence, changed, conflict = newFence(call, partition.bornAt), true, false
  end
  if newPartition then
    redis.call('HSET', headerKey, 'h', packPartition(partition), fenceField, packFence(fence))
  elseif changed then
    redis.call('HSET', headerKey, fenceField, packFence(fence))
  end
  return partition, fence, conflict
end

-- Whether a call carries anything that does harm when it comes late (rule 7).
local function believes(call)
  return call.unspent > 0 or call.returned > 0 or call.disown > 0 or call.witness > 0 or call.since > 0
end

-- Clients round whole numbers close to 2^53 that come as numbers.
local function exactly(number)
  if number <= 9007199254740900 then return number end
  return string.format('%.0f', number)
end

local function refusal(status, call, partition, fence)
  return {
    status, call.seq, now, partition.era, fence.version, exactly(fence.burst), fence.rateNum, fence.rateDen,
  }
end

local function grantReply(call, partition, fence, holder, bucket)
  return {
    0, call.seq, now, partition.era, fence.version, exactly(fence.burst), fence.rateNum, fence.rateDen,
    exactly(holder.granted), exactly(holder.level), holder.horizon, holder.next, holder.retry,
    (holder.giveBack and 1 or 0) + (holder.conflict and 2 or 0), bucket.incarnation, bucket.expiresAt,
  }
end

-- Writes what changed of a bucket, and its expiry where that moved.
local function writeBucket(bucketKey, bucket, call, terms, classes, expiryMoved)
  local write = { 'HSET', bucketKey, 'b', packMain(bucket), call.holder, packHolder(bucket.own) }
  local newTerms, newClasses = packTerms(bucket), packClasses(bucket)
  if newTerms ~= terms then
    write[#write + 1] = 't'
    write[#write + 1] = newTerms
  end
  if newClasses ~= classes then
    write[#write + 1] = 'c'
    write[#write + 1] = newClasses
  end
  for i = 1, #bucket.changed do write[#write + 1] = bucket.changed[i] end
  redis.call(unpack(write))
  if #bucket.dropped > 0 then redis.call('HDEL', bucketKey, unpack(bucket.dropped)) end
  -- One more, for the milliseconds that both clocks are cut to.
  if expiryMoved then redis.call('PEXPIRE', bucketKey, ceil((bucket.expiresAt - now) / 1000) + 1) end
end

local function execute(headerKey, bucketKey, call)
  local partition, fence, conflict = readHeader(headerKey, call)
  if believes(call) and (now - call.sentAt > MAX_AGE or call.sentAt - now > MAX_SKEW) then
    return refusal(2, call, partition, fence)
  end

  local stored = redis.call('HMGET', bucketKey, 'b', 't', 'c', call.holder)
  local terms, classes = stored[2], stored[3]
  local bucket
  if stored[1] then
    bucket = unpackBucket(stored[1], terms, classes)
    if bucket.expiresAt <= now then
      redis.call('UNLINK', bucketKey)
      bucket, terms, classes = nil, false, false
    elseif stored[4] then
      bucket.own = unpackHolder(stored[4])
      if call.seq < bucket.own.seq then return refusal(1, call, partition, fence) end
      if call.seq == bucket.own.seq then return grantReply(call, partition, fence, bucket.own, bucket) end
    end
  end

  if bucket then
    bucket.changed, bucket.dropped = {}, {}
    advance(bucket, fence, partition, bucketKey, call)
  else
    bucket = newBucket(fence, partition)
    bucket.changed, bucket.dropped = {}, {}
  end
  local holder = report(bucket, call)
  chargeOutage(bucket, call)
  capAt(bucket.level, bucket.burst - bucket.outstanding)

  local leaseEnd = now + call.lease + leaseGrace(call.lease)
  if holder.outstanding > 0 then leaseEnd = max(holder.leaseEnd, leaseEnd) end
  holder.leaseEnd = leaseEnd
  grant(bucket, holder, call, conflict)
  local expiryMoved = keep(bucket, holder, call)
  writeBucket(bucketKey, bucket, call, terms, classes, expiryMoved)
  return grantReply(call, partition, fence, holder, bucket)
end

local replies = {}
for i = 1, #KEYS / 2 do
  replies[i] = execute(KEYS[2 * i - 1], KEYS[2 * i], readCall(PREAMBLE + (i - 1) * STRIDE))
end
return replies
`,
};

export const heartbeatScript: EmbeddedScript = {
  name: 'heartbeat',
  sha1: '6cd661ecc114a4502e83fae8951afbbd58ce710d',
  source: `-- Counts a limiter as alive in its group, and says how many are.
--
-- KEYS[1]  sorted set  {hg:fleet}:<group>   members' ids by the store time they were last heard of (ms)
-- ARGV[1]  member      random id of the limiter
-- ARGV[2]  ttl         ms, whole, positive: who has not been heard of for longer is dropped
-- Returns how many are left, the caller included; at least 1.
--
-- Keeps: nobody is counted later than ttl after the last heartbeat. A clock that stepped back drops nobody early; who
--   was heard of "in the future" is taken to have been heard of now. Clock: Redis TIME, once. Expiry: ttl, at each call.
-- Caller: src/ceiling/redis-ceiling.ts.
-- The store's clock, read once a script: what everything in it is dated with.
--
-- Provides: \`now\`, microseconds since the Unix epoch, whole. Clock: Redis TIME, which is wall time and may step; on
--   Redis 7.0 it moves even within a script, so nothing else may read it.
-- Used by: lease.lua, heartbeat.lua. Tests put clock-from-argument.lua in its place.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local ttl = tonumber(ARGV[2])
local nowMs = math.floor(now / 1000)
local ahead = redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', nowMs), '+inf')
for i = 1, #ahead do redis.call('ZADD', KEYS[1], string.format('%.0f', nowMs), ahead[i]) end
redis.call('ZADD', KEYS[1], string.format('%.0f', nowMs), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', nowMs - ttl))
redis.call('PEXPIRE', KEYS[1], ttl)
return redis.call('ZCARD', KEYS[1])
`,
};

export const embeddedScripts: readonly EmbeddedScript[] = [leaseScript, heartbeatScript];
