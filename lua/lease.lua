-- Executes a tick's worth of lease calls of one limiter: each reports, takes back, returns and is granted tokens.
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
--- @include "clock"
--- @include "server"
--- @include "ledger"

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
