-- Executes a tick's worth of lease calls of one limiter: each reports, takes back, returns and is granted tokens.
--
-- KEYS[2i-1]  hash  {hg:<p>}:h                    header of the partition of call i
-- KEYS[2i]    hash  {hg:<p>}:b:<policy>:<key>     bucket of call i
-- ARGV[1]     new era     identity for a header that has to be made, or that is suspected to be stale; random
-- ARGV[2]     identify    '1': notice that the data may be stale (server.lua); '0': no need, or not permitted
-- ARGV[3]     new store   'empty' | 'full': whether buckets of a store without data start so
-- ARGV[4]     calls       of each 26 little-endian doubles, whole, from 0 up to 2^53, in the order in which they are read
--                         below; tokens in micro-tokens, times and spans in microseconds; src/ceiling/ceiling-store.ts
--                         has what each means. Fence and holder are the numbers of names, from 0; the rule, which comes
--                         last, is that of limits.lua. Where it is not 0, length, start and end of its window follow
-- ARGV[5...]  names       under which terms are fenced; random ids of limiters, 8 characters or more
-- Returns one string: now µs as a little-endian double, and then for each call 15 of them and a string with its length in
--   a byte before it: status (0 granted, 1 stale, 2 refused), seq, version, burst µtok, rateNum, rateDen; granted µtok,
--   fair level µtok/s, horizon µs, next µs, retry µs, flags (1 give back, 2 conflict), incarnation µs, certainUntil µs,
--   and under windows the lease µs if it is shorter than asked (all 0 unless granted); the era. Whole.
--
-- Records, all MessagePack: whole numbers take 1 to 9 bytes, others are doubles, and both come back exactly. Each stays
-- below 65 bytes for usual numbers, which keeps a hash of up to 128 fields in its small encoding.
--   header  h            bornAt µs, era, replication id of the server that last answered ('' unknown)
--           f:<fence>    the variables f… below
--   bucket  b            what moves with each call: at µs, tokens, remainder, outstanding, moments relative to at, …
--           t            what rarely moves: the terms it counts under, era, birth, longest lease
--           c            demand classes (classes.lua)
--           w            under windows: the variables w… and clearedAt below
--           l            a log of what was spent, oldest first: big-endian doubles, at µs and µtok in turn
--           <holder id>  one record a holder, the variables h… below; longer than the bucket's own fields
--
-- Keeps: T + O <= B in every bucket. A call answered stale, repeated or refused writes nothing of its bucket; it may
--   move the fence (rule 10). Clock: Redis TIME, once. Expiry: the bucket's, which is when it has become the same as an
--   untouched one (rule 11), written when it moves; the header's never.
-- Caller: src/ceiling/redis-ceiling.ts. Model: src/ceiling/ledger.ts.
--
-- One long body instead of functions, and variables instead of tables with names: a script makes its functions anew
-- whenever it is called, and those that share variables cost more than all the arithmetic (docs/decisions has figures).
local NEW_ERA, IDENTIFY, NEW_STORE, CALLS = ARGV[1], ARGV[2] == '1', ARGV[3], ARGV[4]
-- What a record's horizon is packed relative to, so that it takes one byte where it is that.
local USUAL_HORIZON = 250000
-- Up to FEW_HOLDERS a sweep looks at all holders at once, as the model does; beyond, at SWEEP_COUNT a call.
local FEW_HOLDERS, SWEEP_COUNT = 128, 64
--- @include "clock"
--- @include "server"
--- @include "limits"
--- @include "exact"
local heldReady, capUnder, refillGuarded, windowAt, leaseWithin
--- @include "fence"
--- @include "classes"

local place = 1
local replies = { struct.pack('<d', now) }
for i = 1, #KEYS / 2 do
  local status = 0
  local partitionEra, fVersion, fBurst, fRateNum, fRateDen
  local version, burst, rateNum, rateDen, incarnation, expiresAt
  local hGranted, hLevel, hHorizon, hNext, hRetry, hGiveBack, hConflict
  local leaseCut = 0
  local fenceField, holderId, callInheritance, callVersion, callBurst, callRateNum, callRateDen, seq, disown, unspent,
    returned, refund, refundSince, need, head, want, callDemand, callWeight, lease, sentAt, since, witness,
    callIncarnation, callCertainUntil, callGuard, callRule, behind =
    struct.unpack('<dddddddddddddddddddddddddd', CALLS, place)
  place = behind
  fenceField, holderId = 'f:' .. ARGV[5 + fenceField], ARGV[5 + holderId]
  repeat
    local headerKey, bucketKey = KEYS[2 * i - 1], KEYS[2 * i]
    local callLength, callStart, callEnd = 0, 0, 0
    if callRule ~= 0 then
      callLength, callStart, callEnd, place = struct.unpack('<ddd', CALLS, place)
      if not windowAt then
--- @include "windows"
      end
    end

    -- The partition and the fence, brought up to the call.
    local stored = redis.call('HMGET', headerKey, 'h', fenceField)
    local packedPartition, packedFence = stored[1], stored[2]
    local bornAt, server
    if packedPartition then
      bornAt, partitionEra, server = unpackMessage(packedPartition)
      if SERVER ~= '' and server ~= SERVER then
        if server == '' then
          packedPartition = false
        else
          -- Another server answers than the last time, so this data may be older than what was granted: a new era.
          local write = { 'HSET', headerKey, 'h', pack(now, NEW_ERA, SERVER) }
          local fields = redis.call('HGETALL', headerKey)
          for j = 1, #fields, 2 do
            if fields[j] ~= 'h' then
              local version, burst, rateNum, rateDen, inheritance, resetAt, assertedAt, tokens, _, _, guard, length,
                burstBefore =
                unpackMessage(fields[j + 1])
              write[#write + 1] = fields[j]
              write[#write + 1] = pack(
                version, burst, rateNum, rateDen, inheritance, resetAt, assertedAt, min(tokens, 0), 0, now, guard, length,
                burstBefore
              )
            end
          end
          redis.call(unpack(write))
          bornAt, partitionEra = now, NEW_ERA
          packedFence = redis.call('HGET', headerKey, fenceField)
        end
      end
    else
      -- Where nothing was there before, nothing has been lost: such data is as old as can be.
      bornAt, partitionEra = NEW_STORE == 'full' and 0 or now, NEW_ERA
    end
    local fInheritance, fResetAt, fAssertedAt, fTokens, fRemainder, fAt, fGuard, fLength, fBurstBefore
    local fenceChanged, conflict = false, false
    if packedFence then
      fVersion, fBurst, fRateNum, fRateDen, fInheritance, fResetAt, fAssertedAt, fTokens, fRemainder, fAt, fGuard,
        fLength, fBurstBefore = unpackMessage(packedFence)
    end
    if not refillGuarded and (callGuard > 0 or (fGuard and fGuard > 0)) then
--- @include "guard"
    end
    if packedFence then
--- @include "meet-fence"
    else
      fVersion, fBurst, fRateNum, fRateDen = callVersion, callBurst, callRateNum, callRateDen
      fInheritance, fResetAt, fAssertedAt, fGuard, fLength = callInheritance, 0, 0, callGuard, callLength
      fBurstBefore = callBurst
      local start = NEW_STORE == 'full' and callBurst or 0
      fTokens, fRemainder, fAt = start, 0, min(bornAt, now)
      fenceChanged = true
    end
    local guardUntil = fGuard > 0 and bornAt + fGuard or 0
    if not packedFence then
      if guardUntil == 0 then
        fTokens, fRemainder, fAt = refill(fTokens, fRemainder, fAt, now, fRateNum, fRateDen, fBurst)
      else
        fTokens, fRemainder, fAt =
          refillGuarded(fTokens, fRemainder, fAt, now, fRateNum, fRateDen, fBurst, 0, guardUntil)
      end
    end
    if fenceChanged or not packedPartition then
      local fence = pack(
        fVersion, fBurst, fRateNum, fRateDen, fInheritance, fResetAt, fAssertedAt, fTokens, fRemainder, fAt, fGuard, fLength,
        fBurstBefore
      )
      if packedPartition then
        redis.call('HSET', headerKey, fenceField, fence)
      else
        redis.call('HSET', headerKey, 'h', pack(bornAt, partitionEra, SERVER), fenceField, fence)
      end
    end

    -- Older than it may be, and it carries something that does harm when it comes late (rule 7).
    local believes = unspent > 0 or returned > 0 or refund > 0 or disown > 0 or witness > 0 or since > 0
    if believes and (now - sentAt > MAX_AGE or sentAt - now > MAX_SKEW) then
      status = 2
      break
    end

    -- The bucket and the caller's record.
    local tokens, remainder, at, outstanding, lastEnd, sweepAt, members, slotAt, reservedFor, reserved, reservedUntil,
      sweepCursor, sweepNext
    local era, longestLease, paidUntil, classes
    local hOutstanding, hSeq, hLastGrant, hLeaseEnd, hMemberUntil, hDemand, hWeight, hCredit, hCreditAt, hSlotAt
    local wLength, wStart, wEnd, wCurrent, wPrevious, wLastFrom, clearedAt, log
    local known, changed, dropped = false, nil, nil
    local termsChanged, classesChanged, expiryMoved = false, false, false
    if callRule == 0 then
      stored = redis.call('HMGET', bucketKey, 'b', 't', 'c', holderId)
    else
      stored = redis.call('HMGET', bucketKey, 'b', 't', 'c', holderId, 'w', 'l')
    end
    local main, terms, packedClasses = stored[1], stored[2], stored[3]
    if main then
      at, tokens, remainder, outstanding, lastEnd, sweepAt, expiresAt, members, slotAt, reservedFor, reserved,
        reservedUntil, sweepCursor, sweepNext = unpackMessage(main)
      expiresAt = expiresAt + at
      if expiresAt <= now then
        redis.call('UNLINK', bucketKey)
        main = false
      end
    end
    if main then
      lastEnd = lastEnd + at
      sweepAt = sweepAt + at
      -- "Never" (0) is packed as false.
      slotAt = slotAt and slotAt + at or 0
      reserved = reserved or 0
      reservedUntil = reservedUntil and reservedUntil + at or 0
      sweepNext = sweepNext and sweepNext + at or MAX_SAFE_INTEGER
      version, burst, rateNum, rateDen, era, incarnation, longestLease, paidUntil = unpackMessage(terms)
      classes = { unpackMessage(packedClasses) }
      if callRule ~= 0 then
        wLength, wStart, wEnd, wCurrent, wPrevious, wLastFrom, clearedAt = unpackMessage(stored[5])
        log = stored[6] or ''
      end
      if stored[4] then
        local flags
        hCreditAt, hOutstanding, hSeq, hLeaseEnd, hMemberUntil, hDemand, hWeight, hCredit, hSlotAt, hGranted, hLevel,
          hHorizon, hNext, hRetry, flags = unpackMessage(stored[4])
        hLeaseEnd = hLeaseEnd + hCreditAt
        hMemberUntil = hMemberUntil + hLeaseEnd
        hSlotAt = hSlotAt and hSlotAt + hCreditAt + hNext or 0
        hHorizon = hHorizon + USUAL_HORIZON
        hRetry = hRetry + hNext
        hLastGrant = flags < 4 and hGranted or 0
        hGiveBack = flags % 2 == 1
        hConflict = flags % 4 >= 2
        known = true
      end
    end
    if known and seq < hSeq then
      status = 1
      break
    end
    -- Sent under a lease that has ended here since: what it holds and gives back has been counted as spent.
    if known and seq > hSeq and (unspent > 0 or returned > 0) and hLeaseEnd <= now and sentAt < hLeaseEnd then
      status = 2
      break
    end

    local answered = known and seq == hSeq
    -- Another window of the calendar has begun than the call says, and nobody has said which.
    local lacksWindow = callRule == CALENDAR and (now < callStart or now >= callEnd) and not (main and now < wEnd)
    if not answered and lacksWindow then
      status = 2
      break
    end

    if not answered then
--- @include "ledger"
      -- Whatever changed is written, and its expiry where that moved.
      local reserving = reservedFor ~= ''
      main = pack(
        at, tokens, remainder, outstanding, lastEnd - at, sweepAt - at, expiresAt - at, members,
        slotAt ~= 0 and slotAt - at, reservedFor, reserving and reserved, reserving and reservedUntil - at, sweepCursor,
        sweepCursor and sweepNext - at
      )
      local flags = (hGiveBack and 1 or 0) + (hConflict and 2 or 0) + (hLastGrant == 0 and 4 or 0)
      local own = pack(
        hCreditAt, hOutstanding, hSeq, hLeaseEnd - hCreditAt, hMemberUntil - hLeaseEnd, hDemand, hWeight, hCredit,
        hSlotAt ~= 0 and hSlotAt - hCreditAt - hNext, hGranted, hLevel, hHorizon - USUAL_HORIZON, hNext, hRetry - hNext,
        flags
      )
      if termsChanged or changed then
        terms = pack(version, burst, rateNum, rateDen, era, incarnation, longestLease, paidUntil)
        redis.call(
          'HSET', bucketKey, 'b', main, holderId, own, 'c', pack(unpack(classes)), 't', terms, unpack(changed or {})
        )
      elseif classesChanged then
        redis.call('HSET', bucketKey, 'b', main, holderId, own, 'c', pack(unpack(classes)))
      else
        redis.call('HSET', bucketKey, 'b', main, holderId, own)
      end
      if callRule ~= 0 then
        local window = pack(wLength, wStart, wEnd, wCurrent, wPrevious, wLastFrom, clearedAt)
        if callRule == LOG then
          redis.call('HSET', bucketKey, 'w', window, 'l', log)
        else
          redis.call('HSET', bucketKey, 'w', window)
        end
      end
      if dropped and #dropped > 0 then redis.call('HDEL', bucketKey, unpack(dropped)) end
      -- One more, for the milliseconds that both clocks are cut to.
      if expiryMoved then redis.call('PEXPIRE', bucketKey, ceil((expiresAt - now) / 1000) + 1) end
    end

    if version > fVersion then fVersion, fBurst, fRateNum, fRateDen = version, burst, rateNum, rateDen end
    if callRule ~= 0 then
      -- The same for a repeat: from when the call was executed, and when its lease ends here.
      local cut = leaseWithin(callRule, lease, wLength, hLeaseEnd, hCreditAt)
      if cut < lease then leaseCut = max(1, cut) end
    end
  until true
  if status ~= 0 then
    hGranted, hLevel, hHorizon, hNext, hRetry, hGiveBack, hConflict, incarnation, expiresAt = 0, 0, 0, 0, 0, false, false, 0, 0
  end
  replies[i + 1] = struct.pack(
    '<dddddddddddddddBc0', status, seq, fVersion, fBurst, fRateNum, fRateDen, hGranted, hLevel, hHorizon, hNext, hRetry,
    (hGiveBack and 1 or 0) + (hConflict and 2 or 0), incarnation, expiresAt, leaseCut, #partitionEra, partitionEra
  )
end
return table.concat(replies)
