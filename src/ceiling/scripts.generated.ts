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
  sha1: 'ddbf96d1be9838a8ec52045d6808975ae4ede6d7',
  source: `-- Executes a tick's worth of lease calls of one limiter: each reports, takes back, returns and is granted tokens.
--
-- KEYS[2i-1]  hash  {hg:<p>}:h                    header of the partition of call i
-- KEYS[2i]    hash  {hg:<p>}:b:<policy>:<key>     bucket of call i
-- ARGV[1]     new era     identity for a header that has to be made, or that is suspected to be stale; random
-- ARGV[2]     identify    '1': notice that the data may be stale (server.lua); '0': no need, or not permitted
-- ARGV[3]     new store   'empty' | 'full': whether buckets of a store without data start so
-- then three arguments a call:
--   fence     name under which the terms are fenced
--   holder    random id of the limiter, 8 characters or more
--   numbers   21 big-endian doubles, whole, from 0 up to 2^53, in the order in which they are read below; tokens in
--             micro-tokens, times and spans in microseconds; src/ceiling/ceiling-store.ts has what each means
-- Returns one array a call: status (0 granted, 1 stale, 2 refused), seq, now µs, era, version, burst µtok, rateNum,
--   rateDen; where granted also: granted µtok, fair level µtok/s, horizon µs, next µs, retry µs, flags (1 give back,
--   2 conflict), incarnation µs, certainUntil µs. Whole; above 2^53 - 64 as text, which clients do not round.
--
-- Records, all MessagePack: whole numbers take 1 to 9 bytes, others are doubles, and both come back exactly. Each stays
-- below 65 bytes for usual numbers, which keeps a hash of up to 128 fields in its small encoding.
--   header  h            bornAt µs, era, replication id of the server that last answered ('' unknown)
--           f:<fence>    the variables f… below
--   bucket  b            what moves with each call: at µs, tokens, remainder, outstanding, moments relative to at, …
--           t            what rarely moves: the terms it counts under, era, birth, longest lease
--           c            demand classes (classes.lua)
--           <holder id>  one record a holder, the variables h… below; longer than the bucket's own fields
--
-- Keeps: T + O <= B in every bucket. A call answered stale, repeated or refused writes nothing of its bucket; it may
--   move the fence (rule 10). Clock: Redis TIME, once. Expiry: the bucket's, which is when it has become the same as an
--   untouched one (rule 11), written when it moves; the header's never.
-- Caller: src/ceiling/redis-ceiling.ts. Model: src/ceiling/ledger.ts.
--
-- One long body instead of functions, and variables instead of tables with names: a script makes its functions anew
-- whenever it is called, and those that share variables cost more than all the arithmetic (docs/decisions has figures).
local NEW_ERA, IDENTIFY, NEW_STORE = ARGV[1], ARGV[2] == '1', ARGV[3]
local NUMBERS = '>ddddddddddddddddddddd'
-- What a record's horizon is packed relative to, so that it takes one byte where it is that.
local USUAL_HORIZON = 250000
-- Up to FEW_HOLDERS a sweep looks at all holders at once, as the model does; beyond, at SWEEP_COUNT a call.
local FEW_HOLDERS, SWEEP_COUNT = 128, 64
-- The store's clock, read once a script: what everything in it is dated with.
--
-- Provides: \`now\`, microseconds since the Unix epoch, whole. Clock: Redis TIME, which is wall time and may step; on
--   Redis 7.0 it moves even within a script, so nothing else may read it.
-- Used by: lease.lua, heartbeat.lua, seats.lua. Tests put clock-from-argument.lua in its place.
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
-- Constants that the ledger and its callers agree on. Microseconds and micro-tokens.
--
-- Twin of: the constants of src/ceiling/{ceiling-store,exact,fence,ledger}.ts; test/lua holds them against each other.
-- Clock: none. Writes nothing. Used by: lease.lua and its fragments.
local MICRO = 1000000
local MAX_SKEW = 100000
local MAX_AGE = 250000
local KEEP_LONGER = 1000000
local CONTEST = 60000000
local ASSERT_EVERY = 5000000
local LONGEST = 2251799813685248
local MAX_SAFE_INTEGER = 9007199254740991
local AS_IS, PROPORTIONAL, ADDITIVE, RESET = 0, 1, 2, 3

local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local pack, unpackMessage = cmsgpack.pack, cmsgpack.unpack
-- Exact whole-number arithmetic on tokens and time, and the one refill function.
--
-- Keeps: no number passes 2^53 unless it is thrown away; cutting a span in pieces changes nothing (rule 12); time that
--   went backwards pays nothing. \`a % b\` of Lua 5.1 rounds, so remainders are math.fmod and quotients (a - r) / b.
-- A level goes in and comes out as its three numbers: tokens, remainder, at.
-- Twin of: src/ceiling/exact.ts, which has the reasons. Clock: \`now\` as given. Writes nothing.
-- Used by: fence.lua, allotment.lua, ledger.lua, lease.lua.

-- a * b + carry over divisor: quotient, remainder. Whole, not negative; divisor and carry below 2^52.
local function multiplyDivide(a, b, divisor, carry)
  local rest = math.fmod(a, divisor)
  local whole = ((a - rest) / divisor) * b
  local product = rest * b + carry
  if product <= 9007199254740991 then
    local remainder = math.fmod(product, divisor)
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

local function capAt(tokens, remainder, at, now, cap)
  if tokens < cap or (tokens == cap and at > now) then return tokens, remainder, at end
  if at <= now then at = now + 1 end
  return cap, 0, at
end

local function refill(tokens, remainder, at, now, rateNum, rateDen, cap)
  local elapsed = now - at
  if elapsed > 0 then
    local room = cap - tokens
    local about = (elapsed / rateDen) * rateNum
    if about > room * 1.001 + 1 then
      tokens = cap + 1
    else
      local gained
      gained, remainder = multiplyDivide(elapsed, rateNum, rateDen, remainder)
      tokens = tokens + gained
    end
    at = now
  end
  return capAt(tokens, remainder, at, now, cap)
end

local function refillTime(missing, rateNum, rateDen)
  if missing <= 0 then return 0 end
  return min(LONGEST, ceil((missing / rateNum) * rateDen) + 1)
end

local function leaseGrace(lease)
  return ceil(lease / 100) + MAX_SKEW
end
-- Functions on the guard: the time after a loss of the store's data in which wallets may hold what it has not heard of,
-- where a policy asks for the strict rule.
--
-- Keeps: T + O <= (1 - ω)B until the guard is over; T is not pushed below zero for it.
-- Twin of: src/ceiling/guard.ts, which has the reasons. Clock: \`now\` as given. Writes nothing.
-- Used by: fence.lua, allotment.lua, ledger.lua, lease.lua.
local function heldReady(burst)
  return floor(0.4 * burst)
end

local function capUnder(burst, outstanding, guardUntil, now)
  local cap = burst - outstanding
  if now < guardUntil then return min(cap, max(0, cap - heldReady(burst))) end
  return cap
end

local function refillGuarded(tokens, remainder, at, now, rateNum, rateDen, burst, outstanding, guardUntil)
  if at < guardUntil and now >= guardUntil then
    local cap = capUnder(burst, outstanding, guardUntil, guardUntil - 1)
    tokens, remainder, at = refill(tokens, remainder, at, guardUntil, rateNum, rateDen, cap)
  end
  return refill(tokens, remainder, at, now, rateNum, rateDen, capUnder(burst, outstanding, guardUntil, now))
end
-- Functions on terms: what becomes of a level that is carried over from terms to terms.
--
-- Keeps: a bucket that is carried over never holds more than its new burst less what is outstanding.
-- Twin of: inherit() and changeTerms() of src/ceiling/fence.ts, which has the reasons. Clock: \`now\` as given.
-- Writes nothing. Used by: meet-fence.lua, ledger.lua.

-- A level under a burst of \`from\`, of which \`outstanding\` are out, carried over to a burst of \`to\`.
local function inherit(tokens, at, now, from, to, inheritance, outstanding)
  if inheritance == PROPORTIONAL and tokens > 0 then
    tokens = multiplyDivide(tokens, to, from, 0)
  elseif inheritance == ADDITIVE then
    tokens = tokens + (to - from)
  elseif inheritance == RESET then
    tokens = max(tokens, 0) + to
  end
  return capAt(tokens, 0, at, now, to - outstanding)
end

-- The untouched level under the terms of the fence, carried over to a burst of \`to\`.
local function changeTerms(tokens, remainder, at, now, burst, rateNum, rateDen, to, inheritance, guardUntil)
  tokens, remainder, at = refillGuarded(tokens, remainder, at, now, rateNum, rateDen, burst, 0, guardUntil)
  return inherit(tokens, at, now, burst, to, inheritance, 0)
end
-- Functions on demand classes: a flat list, sorted by class: class, demand, weight, …
--
-- Keeps: the sums of a class are those of the records counted in it; exact below 2^53.
-- Twin of: the second half of src/ceiling/allotment.ts. Clock: none. Writes nothing; changes the list.
-- Used by: ledger.lua, allotment.lua.
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

local function joinMembers(classes, demand, weight)
  local index, place = demandClass(demand / weight), 1
  while classes[place] and classes[place] < index do place = place + 3 end
  if classes[place] == index then
    classes[place + 1] = classes[place + 1] + demand
    classes[place + 2] = classes[place + 2] + weight
  else
    for i = #classes, place, -1 do classes[i + 3] = classes[i] end
    classes[place], classes[place + 1], classes[place + 2] = index, demand, weight
  end
end

local function leaveMembers(classes, demand, weight)
  local index, place = demandClass(demand / weight), 1
  while classes[place] and classes[place] < index do place = place + 3 end
  if classes[place] ~= index then return end
  classes[place + 1] = classes[place + 1] - demand
  classes[place + 2] = classes[place + 2] - weight
  if classes[place + 2] <= 0 then
    for i = place, #classes do classes[i] = classes[i + 3] end
  end
end

-- The fair level, and the weight of all members.
local function fairLevel(classes, rate)
  local left, weight, demand = rate, 0, 0
  for i = 1, #classes, 3 do
    demand = demand + classes[i + 1]
    weight = weight + classes[i + 2]
  end
  local total = weight
  if demand <= rate then return 0, total, 0 end
  for i = 1, #classes, 3 do
    if (classes[i + 1] / classes[i + 2]) * weight > left then break end
    left = left - classes[i + 1]
    weight = weight - classes[i + 2]
  end
  return left / weight, total, weight
end

-- Another server answers than the last time, so this data may be older than what was granted: a new era begins now.
local function suspect(headerKey)
  local write = { 'HSET', headerKey, 'h', pack(now, NEW_ERA, SERVER) }
  local fields = redis.call('HGETALL', headerKey)
  for i = 1, #fields, 2 do
    if fields[i] ~= 'h' then
      local version, burst, rateNum, rateDen, inheritance, resetAt, assertedAt, tokens, _, _, guard =
        unpackMessage(fields[i + 1])
      write[#write + 1] = fields[i]
      write[#write + 1] =
        pack(version, burst, rateNum, rateDen, inheritance, resetAt, assertedAt, min(tokens, 0), 0, now, guard)
    end
  end
  redis.call(unpack(write))
end

-- Clients round whole numbers close to 2^53 that come as numbers.
local function exactly(number)
  if number <= 9007199254740900 then return number end
  return string.format('%.0f', number)
end

local replies = {}
for i = 1, #KEYS / 2 do
  repeat
    local headerKey, bucketKey, fenceField = KEYS[2 * i - 1], KEYS[2 * i], 'f:' .. ARGV[3 * i + 1]
    local holderId = ARGV[3 * i + 2]
    local callInheritance, callVersion, callBurst, callRateNum, callRateDen, seq, disown, unspent, returned, need, head,
      want, callDemand, callWeight, lease, sentAt, since, witness, callIncarnation, callCertainUntil, callGuard =
      struct.unpack(NUMBERS, ARGV[3 * i + 3])

    -- The partition and the fence, brought up to the call.
    local stored = redis.call('HMGET', headerKey, 'h', fenceField)
    local packedPartition, packedFence = stored[1], stored[2]
    local bornAt, partitionEra, server
    if packedPartition then
      bornAt, partitionEra, server = unpackMessage(packedPartition)
      if SERVER ~= '' and server ~= SERVER then
        if server == '' then
          packedPartition = false
        else
          suspect(headerKey)
          bornAt, partitionEra = now, NEW_ERA
          packedFence = redis.call('HGET', headerKey, fenceField)
        end
      end
    else
      -- Where nothing was there before, nothing has been lost: such data is as old as can be.
      bornAt, partitionEra = NEW_STORE == 'full' and 0 or now, NEW_ERA
    end
    local fVersion, fBurst, fRateNum, fRateDen, fInheritance, fResetAt, fAssertedAt, fTokens, fRemainder, fAt, fGuard
    local fenceChanged, conflict = false, false
    if packedFence then
      fVersion, fBurst, fRateNum, fRateDen, fInheritance, fResetAt, fAssertedAt, fTokens, fRemainder, fAt, fGuard =
        unpackMessage(packedFence)
-- Part of the body of lease.lua: holds a call's terms against the fence, which is in the variables f….
--
-- Sets: f…; fenceChanged, whether the header must be written; conflict, whether terms of one version disagree.
-- Keeps: a higher version takes over at once, a lower one changes nothing, under the same version the stricter rate and
--   burst win, for as long as anybody stands for them.
-- Twin of: meetFence() of src/ceiling/fence.ts, which has the reasons. Clock: \`now\`. Used by: lease.lua.
local sameRate = callRateNum == fRateNum and callRateDen == fRateDen

-- A clock that stepped back.
if fAssertedAt > now then
  fAssertedAt = now
  fenceChanged = true
end
if fResetAt > now then
  fResetAt = now
  fenceChanged = true
end
if fAt - now > MAX_SKEW then
  fAt = now
  fenceChanged = true
end

-- Under one version the stricter wins here too, and for good.
if callVersion == fVersion and callGuard > fGuard then
  fGuard = callGuard
  fenceChanged = true
end
local guardUntil = fGuard > 0 and bornAt + fGuard or 0

if callVersion > fVersion then
  fInheritance = callInheritance
  if fInheritance == RESET then
    if fResetAt > 0 and now - fResetAt < refillTime(callBurst, callRateNum, callRateDen) then
      fInheritance = AS_IS
    else
      fResetAt = now
    end
  end
  fVersion = callVersion
  fAssertedAt = 0
  fTokens, fRemainder, fAt =
    changeTerms(fTokens, fRemainder, fAt, now, fBurst, fRateNum, fRateDen, callBurst, fInheritance, guardUntil)
  fGuard = callGuard
  fBurst, fRateNum, fRateDen = callBurst, callRateNum, callRateDen
  fenceChanged = true
elseif callVersion < fVersion or (callBurst == fBurst and sameRate) then
  if callVersion == fVersion and fAssertedAt > 0 and now - fAssertedAt > ASSERT_EVERY then
    fAssertedAt = now
    fenceChanged = true
  end
else
  conflict = true
  local slower = callRateNum / callRateDen < fRateNum / fRateDen
  local smaller = callBurst < fBurst
  if slower or smaller then
    fAssertedAt = now
    fInheritance = AS_IS
    local toBurst = smaller and callBurst or fBurst
    fTokens, fRemainder, fAt = changeTerms(fTokens, fRemainder, fAt, now, fBurst, fRateNum, fRateDen, toBurst, AS_IS, guardUntil)
    fBurst = toBurst
    if slower then fRateNum, fRateDen = callRateNum, callRateDen end
    fenceChanged = true
  elseif fAssertedAt == 0 or callBurst == fBurst or sameRate then
    -- It stands for a part of the stricter terms, or nobody has yet.
    if fAssertedAt == 0 or now - fAssertedAt > ASSERT_EVERY then
      fAssertedAt = now
      fenceChanged = true
    end
  elseif now - fAssertedAt > CONTEST then
    fAssertedAt = 0
    fInheritance = AS_IS
    fTokens, fRemainder, fAt = changeTerms(fTokens, fRemainder, fAt, now, fBurst, fRateNum, fRateDen, callBurst, AS_IS, guardUntil)
    fBurst, fRateNum, fRateDen = callBurst, callRateNum, callRateDen
    fenceChanged = true
    conflict = false
  end
end
    else
      fVersion, fBurst, fRateNum, fRateDen = callVersion, callBurst, callRateNum, callRateDen
      fInheritance, fResetAt, fAssertedAt, fGuard = callInheritance, 0, 0, callGuard
      local start = NEW_STORE == 'full' and callBurst or 0
      local untilThen = fGuard > 0 and bornAt + fGuard or 0
      fTokens, fRemainder, fAt =
        refillGuarded(start, 0, min(bornAt, now), now, fRateNum, fRateDen, fBurst, 0, untilThen)
      fenceChanged = true
    end
    local guardUntil = fGuard > 0 and bornAt + fGuard or 0
    if fenceChanged or not packedPartition then
      local fence =
        pack(fVersion, fBurst, fRateNum, fRateDen, fInheritance, fResetAt, fAssertedAt, fTokens, fRemainder, fAt, fGuard)
      if packedPartition then
        redis.call('HSET', headerKey, fenceField, fence)
      else
        redis.call('HSET', headerKey, 'h', pack(bornAt, partitionEra, SERVER), fenceField, fence)
      end
    end
    local reply = { 0, seq, now, partitionEra, fVersion, exactly(fBurst), fRateNum, fRateDen }
    replies[i] = reply

    -- Older than it may be, and it carries something that does harm when it comes late (rule 7).
    local believes = unspent > 0 or returned > 0 or disown > 0 or witness > 0 or since > 0
    if believes and (now - sentAt > MAX_AGE or sentAt - now > MAX_SKEW) then
      reply[1] = 2
      break
    end

    -- The bucket and the caller's record.
    local tokens, remainder, at, outstanding, lastEnd, sweepAt, expiresAt, members, slotAt, reservedFor, reserved,
      reservedUntil, sweepCursor, sweepNext
    local version, burst, rateNum, rateDen, era, incarnation, longestLease, paidUntil, classes
    local hOutstanding, hSeq, hLastGrant, hLeaseEnd, hMemberUntil, hDemand, hWeight, hCredit, hCreditAt, hSlotAt
    local hGranted, hLevel, hHorizon, hNext, hRetry, hGiveBack, hConflict
    local known, changed, dropped = false, nil, nil
    local termsChanged, classesChanged, expiryMoved = false, false, false
    stored = redis.call('HMGET', bucketKey, 'b', 't', 'c', holderId)
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
      reply[1] = 1
      break
    end
    -- Sent under a lease that has ended here since: what it holds and gives back has been counted as spent.
    if known and seq > hSeq and (unspent > 0 or returned > 0) and hLeaseEnd <= now and sentAt < hLeaseEnd then
      reply[1] = 2
      break
    end

    if not known or seq > hSeq then
-- Part of the body of lease.lua: the escrow ledger of one bucket. T tokens in it, O outstanding, T + O <= B.
--
-- Needs: the call, the fence (f…), the bucket and, where \`known\`, the caller's record (h…) in their variables; \`main\`
--   where the bucket is there. Sets: what of them changes; termsChanged,
--   classesChanged, expiryMoved.
-- Keeps: rule 8 (refill first, with the old O, then lease ends), rule 7 (creating a holder ignores \`returned\`), rule 4
--   (a lost grant is taken back when disowned, and only then), rule 11 (expiry).
-- Twin of: execute() in src/ceiling/ledger.ts and what it calls, which has the reasons; only the sweep of ended leases
--   differs, beyond FEW_HOLDERS. Clock: \`now\`. Writes nothing. Used by: lease.lua.
if main then
  if era ~= partitionEra then
    tokens = min(tokens, 0)
    remainder = 0
    at = max(at, bornAt)
    era = partitionEra
    termsChanged = true
  end
  local rebased = at - now > MAX_SKEW
  if rebased then
    local latest = now + longestLease + leaseGrace(longestLease)
    at = now
    lastEnd = min(lastEnd, latest)
    slotAt = min(slotAt, now)
    paidUntil = min(paidUntil, now)
    reservedUntil = min(reservedUntil, now)
    sweepAt = now
    sweepCursor = false
    termsChanged = true
  end
  tokens, remainder, at = refillGuarded(tokens, remainder, at, now, rateNum, rateDen, burst, outstanding, guardUntil)
  if now >= sweepAt then
-- Part of the body of lease.lua: ends leases that are over (counted as spent, never credited) and drops records nothing
-- can refer to any more.
--
-- Sets: outstanding, members, classes, sweepAt…; known and h… of the caller's own record; changed (field, value, …) and
--   dropped (fields), for lease.lua to write.
-- Twin of: sweep() and the second half of rebase() in src/ceiling/ledger.ts, for up to FEW_HOLDERS holders. Beyond it
--   each call looks at about SWEEP_COUNT of them, so that none takes long: a lease that is ended late is only tokens
--   that wait. Clock: \`now\`. Reads the bucket's hash. Used by: ledger.lua.
local few = members <= FEW_HOLDERS
local fields, nextCursor
if few then
  fields = redis.call('HGETALL', bucketKey)
  sweepCursor = false
else
  local page = redis.call('HSCAN', bucketKey, sweepCursor or '0', 'COUNT', SWEEP_COUNT)
  fields = page[2]
  if page[1] ~= '0' then nextCursor = page[1] end
end
if not sweepCursor then sweepNext = MAX_SAFE_INTEGER end
changed, dropped = {}, {}
local latest = now + longestLease + leaseGrace(longestLease)

for j = 1, #fields, 2 do
  local id = fields[j]
  if #id > 1 then
    local creditAt, out, lastSeq, leaseEnd, memberUntil, demand, weight, credit, turnAt, granted, level, horizon, next,
      retry, flags = unpackMessage(fields[j + 1])
    leaseEnd = leaseEnd + creditAt
    memberUntil = memberUntil + leaseEnd
    turnAt = turnAt and turnAt + creditAt + next or 0
    -- Where not all are looked at by the call that rebased, a record from before it betrays itself.
    local clamp = rebased or (not few and leaseEnd > latest + MAX_SKEW)
    if clamp then
      leaseEnd = min(leaseEnd, latest)
      memberUntil = min(memberUntil, latest)
      creditAt = min(creditAt, now)
      turnAt = min(turnAt, now)
    end
    local ended = out > 0 and leaseEnd <= now
    if ended then
      outstanding = outstanding - out
      out = 0
      if flags < 4 then flags = flags + 4 end
    end
    local recordEnd = max(leaseEnd + MAX_AGE, memberUntil)
    if out == 0 and recordEnd <= now then
      leaveMembers(classes, demand, weight)
      members = members - 1
      classesChanged = true
      if id == holderId then
        known = false
      else
        dropped[#dropped + 1] = id
      end
    else
      sweepNext = min(sweepNext, out > 0 and leaseEnd or recordEnd)
      if id == holderId then
        hCreditAt, hOutstanding, hLeaseEnd, hMemberUntil, hSlotAt = creditAt, out, leaseEnd, memberUntil, turnAt
        if ended then hLastGrant = 0 end
      elseif clamp or ended then
        changed[#changed + 1] = id
        changed[#changed + 1] = pack(
          creditAt, out, lastSeq, leaseEnd - creditAt, memberUntil - leaseEnd, demand, weight, credit,
          turnAt ~= 0 and turnAt - creditAt - next, granted, level, horizon, next, retry, flags
        )
      end
    end
  end
end

sweepCursor = nextCursor or false
if not nextCursor then sweepAt = sweepNext end
  end
  local current = fVersion == version and callVersion == fVersion
  if
    fVersion > version
    or (current and (burst ~= fBurst or rateNum ~= fRateNum or rateDen ~= fRateDen))
  then
    tokens, remainder, at = inherit(tokens, at, now, burst, fBurst, fInheritance, outstanding)
    version, burst, rateNum, rateDen = fVersion, fBurst, fRateNum, fRateDen
    termsChanged = true
  end
else
  tokens, remainder, at = refillGuarded(fTokens, fRemainder, fAt, now, fRateNum, fRateDen, fBurst, 0, guardUntil)
  outstanding, lastEnd, sweepAt, expiresAt, members, slotAt = 0, 0, MAX_SAFE_INTEGER, 0, 0, 0
  reservedFor, reserved, reservedUntil = '', 0, 0
  sweepCursor, sweepNext = false, MAX_SAFE_INTEGER
  version, burst, rateNum, rateDen = fVersion, fBurst, fRateNum, fRateDen
  era, incarnation, longestLease, paidUntil = partitionEra, now, 0, 0
  classes = {}
  termsChanged = true
end

-- What the holder says of itself.
if known then
  if disown > 0 and hSeq >= disown then
    local undone = min(hLastGrant, hOutstanding)
    outstanding = outstanding - undone
    hOutstanding = hOutstanding - undone
    tokens = tokens + undone
    hCredit = hCredit + undone
  end
  local credited = min(returned, max(0, hOutstanding - unspent))
  tokens = tokens + credited
  hCredit = hCredit + credited
  outstanding = outstanding + (unspent - hOutstanding)
  if callDemand ~= hDemand or callWeight ~= hWeight then
    leaveMembers(classes, hDemand, hWeight)
    joinMembers(classes, callDemand, callWeight)
    classesChanged = true
  end
else
  -- \`returned\` is ignored: where the record is gone the tokens have been counted as spent.
  outstanding = outstanding + unspent
  members = members + 1
  hLeaseEnd, hCredit, hCreditAt, hSlotAt = 0, 0 / 0, now, 0
  local lost = callIncarnation ~= incarnation and callCertainUntil > incarnation
  if witness > 0 and lost and callIncarnation >= bornAt then
    tokens = min(tokens, max(-burst, tokens - witness))
  end
  joinMembers(classes, callDemand, callWeight)
  classesChanged = true
end
hOutstanding, hSeq, hDemand, hWeight = unspent, seq, callDemand, callWeight

-- The first to come back from an outage in share mode pays for the whole fleet.
if since > 0 then
  local from = max(since, paidUntil)
  if now > from then
    tokens = max(min(tokens, 0), tokens - ceil(((now - from) / rateDen) * rateNum))
  end
  paidUntil = max(paidUntil, now)
  termsChanged = true
end
tokens, remainder, at = capAt(tokens, remainder, at, now, capUnder(burst, outstanding, guardUntil, now))

local leaseEnd = now + lease + leaseGrace(lease)
hLeaseEnd = hOutstanding > 0 and max(hLeaseEnd, leaseEnd) or leaseEnd
do
-- Part of the body of lease.lua. Who gets how much: chooses a grant between 0 and T, by the fair level. It can't break
-- the ceiling.
--
-- Sets: hGranted and the other parts of the reply, the caller's credit, slot and membership, reserved….
-- Twin of: src/ceiling/allotment.ts, statement for statement and with the same floating-point operations in the same
--   order; to change one is to change the other. Clock: \`now\`. Used by: lease.lua.
local rate = (rateNum / rateDen) * MICRO
local horizon = max(1, floor(min(
  max(300000, (members / 11000) * MICRO),
  ((burst / rateNum) * rateDen) / 2
)))
local level, totalWeight, hungry = fairLevel(classes, rate)
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

-- T, less what is being saved for another holder's large need.
if reservedFor ~= '' and reservedUntil <= now then reservedFor = '' end
local available = tokens
if reservedFor ~= '' and reservedFor ~= holderId then
  local since = now - (reservedUntil - 2 * refillTime(burst, rateNum, rateDen))
  local saved = floor(((since / rateDen) * rateNum) / 1.4)
  available = tokens - min(reserved, saved)
end
available = max(0, available)
local ask = need + want
local enough = available >= head
local needed = enough and min(need, available) or 0
-- A bucket that is full loses what is refilled: then nobody has to be held to a share.
local fill = available / max(1, burst - outstanding)
local free = alone or fill >= 1
local granted
if level == 0 then
  granted = enough and max(needed, min(ask, floor((available / (members + 1)) / MICRO) * MICRO)) or 0
elseif fewTokens then
  local kept = refillTime(burst, rateNum, rateDen) <= 60000000
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
  local entitled = min(ask, available, max(earned, surplus, free and needed or 0, lent and head or 0))
  granted = entitled >= head and max(0, entitled) or 0
end
if reservedFor ~= '' and reservedFor ~= holderId then granted = min(granted, needed) end
-- Under the strict rule, what nobody waits for stays within its part of the burst.
if guardUntil > 0 then
  granted = min(granted, max(needed, floor((heldReady(burst) - outstanding) / MICRO) * MICRO))
end
if level > 0 and not fewTokens and granted >= floor(available / MICRO) * MICRO and hCredit > granted then
  hCredit = granted
end
hCredit = hCredit - granted
if (alone or level == 0) and hCredit < 0 then hCredit = 0 end

local unmet = granted < head
if unmet then
  -- Saves for a need that neither the others leave nor the holder's share earns in the time to fill the bucket.
  if reservedFor == holderId then reserved = head end
  if reservedFor == '' and hCredit >= 0 and head > 1500000 then
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
elseif unmet and not alone then
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
  local short = refillTime(head - tokens, rateNum, rateDen)
  local guarded = burst - heldReady(burst)
  if now < guardUntil and head > guarded then
    short = max(short, guardUntil - now + refillTime(head - guarded, rateNum, rateDen))
  end
  next = max(next, short)
  retry = alone and short or next
end

hGranted = granted
hLevel = min(floor(level), MAX_SAFE_INTEGER)
hHorizon = horizon
hNext = next
hRetry = retry
hGiveBack = reservedFor ~= '' and reservedFor ~= holderId
end
tokens = tokens - hGranted
outstanding = outstanding + hGranted
hOutstanding = hOutstanding + hGranted
hLastGrant = hGranted
hConflict = conflict
if lease > longestLease then
  longestLease = lease
  termsChanged = true
end

lastEnd = max(lastEnd, hLeaseEnd)
local nextLook = hOutstanding > 0 and hLeaseEnd or max(hLeaseEnd + MAX_AGE, hMemberUntil)
sweepAt = min(sweepAt, nextLook)
if sweepCursor then sweepNext = min(sweepNext, nextLook) end
local needed = max(
  max(now, guardUntil) + refillTime(burst - tokens, rateNum, rateDen),
  lastEnd + max(refillTime(outstanding, rateNum, rateDen), MAX_AGE),
  since > 0 and paidUntil or 0
)
if needed > expiresAt then
  expiresAt = needed + KEEP_LONGER
  expiryMoved = true
end
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
      if dropped and #dropped > 0 then redis.call('HDEL', bucketKey, unpack(dropped)) end
      -- One more, for the milliseconds that both clocks are cut to.
      if expiryMoved then redis.call('PEXPIRE', bucketKey, ceil((expiresAt - now) / 1000) + 1) end
    end

    if version > fVersion then
      reply[5], reply[6], reply[7], reply[8] = version, exactly(burst), rateNum, rateDen
    end
    reply[9], reply[10], reply[11], reply[12], reply[13] = exactly(hGranted), exactly(hLevel), hHorizon, hNext, hRetry
    reply[14] = (hGiveBack and 1 or 0) + (hConflict and 2 or 0)
    reply[15], reply[16] = incarnation, expiresAt
  until true
end
return replies
`,
};

export const heartbeatScript: EmbeddedScript = {
  name: 'heartbeat',
  sha1: '0fe4a0695497bf1c2059d0894383f0ec597dc477',
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
-- Used by: lease.lua, heartbeat.lua, seats.lua. Tests put clock-from-argument.lua in its place.
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

export const seatsScript: EmbeddedScript = {
  name: 'seats',
  sha1: '072dc60a1b9f3c2a6e840ff71138d4b65225adef',
  source: `-- Executes a tick's worth of calls of one limiter about seats: how many requests are in flight for a key, fleet-wide.
--
-- KEYS[i]  hash  {hg:<p>}:s:<policy>:<key>   seats of call i
-- then seven arguments a call:
--   holder     random id of the limiter, 8 characters or more
--   seq        whole, from 1: a repeat gets the same answer, an older call changes nothing
--   version    of the policy, whole
--   limit      most seats, whole, positive
--   held       seats in use at the holder now, whole
--   want       seats for callers that wait, whole
--   lostAfter  µs, whole, positive: a holder not heard of for this long has left its seats
-- Returns one array a call: status (0 granted, 1 stale), seq, granted, taken, most (0: enough for all), version.
--
-- Fields, numbers as text:
--   v            version limit
--   <holder id>  seq seats granted unmet heardAt lostAfter
--
-- Keeps: grants nothing while the seats known to be taken reach the limit. What a holder says it holds is noted as it
--   is: work that is under way can't be called back. Clock: Redis TIME, once. Expiry: when the last holder is lost.
-- Caller: src/ceiling/redis-seats.ts. Model: src/ceiling/seat-ledger.ts.
-- The store's clock, read once a script: what everything in it is dated with.
--
-- Provides: \`now\`, microseconds since the Unix epoch, whole. Clock: Redis TIME, which is wall time and may step; on
--   Redis 7.0 it moves even within a script, so nothing else may read it.
-- Used by: lease.lua, heartbeat.lua, seats.lua. Tests put clock-from-argument.lua in its place.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local WANT_TTL = 1000000
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local function text(...)
  return string.format(string.rep('%.0f ', select('#', ...)), ...)
end

local replies = {}
for i = 1, #KEYS do
  local key, a = KEYS[i], (i - 1) * 7
  local id, seq, version, limit = ARGV[a + 1], tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
  local held, want, lostAfter = tonumber(ARGV[a + 5]), tonumber(ARGV[a + 6]), tonumber(ARGV[a + 7])

  local fields = redis.call('HGETALL', key)
  local write, lost = { 'HSET', key }, { 'HDEL', key }
  local demands, taken, demanded, last = {}, 0, 0, 0
  local mySeq, mySeats, myGranted, myUnmet, myHeardAt = 0, 0, 0, 0, now
  for f = 1, #fields, 2 do
    local field = fields[f]
    local numbers = {}
    for number in string.gmatch(fields[f + 1], '%S+') do numbers[#numbers + 1] = tonumber(number) end
    if field == 'v' then
      if numbers[1] > version then
        version, limit = numbers[1], numbers[2]
      elseif numbers[1] == version then
        limit = min(limit, numbers[2])
      end
    else
      -- A clock that was set back must not keep the seats of a dead holder for longer than they would have been kept.
      local heardAt = min(numbers[5], now)
      if heardAt + numbers[6] <= now then
        lost[#lost + 1] = field
      else
        if heardAt < numbers[5] then
          write[#write + 1] = field
          write[#write + 1] = text(numbers[1], numbers[2], numbers[3], numbers[4], heardAt, numbers[6])
        end
        if field == id then
          mySeq, mySeats, myGranted, myUnmet, myHeardAt = numbers[1], numbers[2], numbers[3], numbers[4], heardAt
        else
          local demand = numbers[2] + (now - heardAt < WANT_TTL and numbers[4] or 0)
          demands[#demands + 1], taken, demanded = demand, taken + numbers[2], demanded + demand
        end
        last = max(last, heardAt + numbers[6])
      end
    end
  end
  if #lost > 2 then redis.call(unpack(lost)) end

  local fresh = seq > mySeq
  if fresh then mySeats, myUnmet, myHeardAt = held, want, now end
  if fresh or mySeq > 0 then
    local demand = mySeats + (now - myHeardAt < WANT_TTL and myUnmet or 0)
    demands[#demands + 1], taken, demanded = demand, taken + mySeats, demanded + demand
  end
  local most = 0
  if demanded > limit then
    table.sort(demands)
    local rest, left = limit, #demands
    for d = 1, #demands do
      if demands[d] * left > rest then break end
      rest, left = rest - demands[d], left - 1
    end
    most = max(1, ceil(rest / left))
  end

  local status, granted = 0, 0
  if fresh then
    local room = limit - taken
    if most > 0 then room = min(room, most - held) end
    granted = max(0, min(want, room))
    taken = taken + granted
    write[#write + 1] = id
    write[#write + 1] = text(seq, held + granted, granted, want - granted, now, lostAfter)
    last = max(last, now + lostAfter)
  elseif seq == mySeq then
    granted = myGranted
  else
    status = 1
  end
  if last > now then
    write[#write + 1] = 'v'
    write[#write + 1] = text(version, limit)
    redis.call(unpack(write))
    redis.call('PEXPIRE', key, floor((last - now) / 1000) + 1)
  end
  replies[i] = { status, seq, granted, taken, most, version }
end
return replies
`,
};

export const embeddedScripts: readonly EmbeddedScript[] = [leaseScript, heartbeatScript, seatsScript];
