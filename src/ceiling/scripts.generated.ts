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
  sha1: 'e9f92408fc7492c1c62091094cd96efeaae2b9cd',
  source: `local NEW_ERA, IDENTIFY, NEW_STORE, CALLS = ARGV[1], ARGV[2] == '1', ARGV[3], ARGV[4]
local USUAL_HORIZON = 250000
local FEW_HOLDERS, SWEEP_COUNT = 128, 64
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local SERVER = ''
if IDENTIFY then
local info = redis.pcall('INFO', 'replication')
if type(info) == 'string' then SERVER = string.match(info, 'master_replid:(%x+)') or '' end
end
local MICRO = 1000000
local MAX_SKEW = 100000
local MAX_AGE = 250000
local KEEP_LONGER = 1000000
local CONTEST = 60000000
local ASSERT_EVERY = 5000000
local LONGEST = 2251799813685248
local MAX_SAFE_INTEGER = 9007199254740991
local FIRST_USE, CALENDAR, LOG = 2, 3, 4
local AS_IS, PROPORTIONAL, ADDITIVE, RESET = 0, 1, 2, 3
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local pack, unpackMessage = cmsgpack.pack, cmsgpack.unpack
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
local heldReady, capUnder, refillGuarded, windowAt, leaseWithin
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
local function changeTerms(tokens, remainder, at, now, burst, rateNum, rateDen, to, inheritance, guardUntil)
if guardUntil == 0 then
tokens, remainder, at = refill(tokens, remainder, at, now, rateNum, rateDen, burst)
else
tokens, remainder, at = refillGuarded(tokens, remainder, at, now, rateNum, rateDen, burst, 0, guardUntil)
end
return inherit(tokens, at, now, burst, to, inheritance, 0)
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
local function fairLevel(classes, rate)
local left, weight, demand = rate, 0, 0
for i = 1, #classes, 3 do
demand = demand + classes[i + 1]
weight = weight + classes[i + 2]
end
local total = weight
if demand <= rate then return 0, total, 0, demand end
for i = 1, #classes, 3 do
if (classes[i + 1] / classes[i + 2]) * weight > left then break end
left = left - classes[i + 1]
weight = weight - classes[i + 2]
end
return left / weight, total, weight, demand
end
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
windowAt = function(rule, length, callStart, callEnd, now)
if rule == FIRST_USE then return now, now + length end
if rule == CALENDAR then
if now >= callStart and now < callEnd then return callStart, callEnd end
return now, now + length
end
local start = now - math.fmod(now, length)
return start, start + length
end
leaseWithin = function(rule, lease, length, windowEnd, now)
if rule > CALENDAR then return lease end
local left = windowEnd - now - min(MAX_SKEW, ceil(length / 100))
if lease + ceil(lease / 100) <= left then return lease end
local short = floor(left / 1.01)
return short < 5000 and 0 or short
end
end
end
local stored = redis.call('HMGET', headerKey, 'h', fenceField)
local packedPartition, packedFence = stored[1], stored[2]
local bornAt, server
if packedPartition then
bornAt, partitionEra, server = unpackMessage(packedPartition)
if SERVER ~= '' and server ~= SERVER then
if server == '' then
packedPartition = false
else
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
bornAt, partitionEra = NEW_STORE == 'full' and 0 or now, NEW_ERA
end
local fInheritance, fResetAt, fAssertedAt, fTokens, fRemainder, fAt, fGuard, fLength, fBurstBefore
local fenceChanged, conflict = false, false
if packedFence then
fVersion, fBurst, fRateNum, fRateDen, fInheritance, fResetAt, fAssertedAt, fTokens, fRemainder, fAt, fGuard,
fLength, fBurstBefore = unpackMessage(packedFence)
end
if not refillGuarded and (callGuard > 0 or (fGuard and fGuard > 0)) then
heldReady = function(burst)
return floor(0.4 * burst)
end
capUnder = function(burst, outstanding, guardUntil, now)
local cap = burst - outstanding
if now < guardUntil then return min(cap, max(0, cap - heldReady(burst))) end
return cap
end
refillGuarded = function(tokens, remainder, at, now, rateNum, rateDen, burst, outstanding, guardUntil)
if at < guardUntil and now >= guardUntil then
local cap = capUnder(burst, outstanding, guardUntil, guardUntil - 1)
tokens, remainder, at = refill(tokens, remainder, at, guardUntil, rateNum, rateDen, cap)
end
return refill(tokens, remainder, at, now, rateNum, rateDen, capUnder(burst, outstanding, guardUntil, now))
end
end
if packedFence then
local sameRate = callRateNum == fRateNum and callRateDen == fRateDen and callLength == fLength
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
fBurstBefore = fBurst
fBurst, fRateNum, fRateDen, fLength = callBurst, callRateNum, callRateDen, callLength
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
fBurstBefore, fBurst = fBurst, toBurst
if slower then fRateNum, fRateDen, fLength = callRateNum, callRateDen, callLength end
fenceChanged = true
elseif fAssertedAt == 0 or callBurst == fBurst or sameRate then
if fAssertedAt == 0 or now - fAssertedAt > ASSERT_EVERY then
fAssertedAt = now
fenceChanged = true
end
elseif now - fAssertedAt > CONTEST then
fAssertedAt = 0
fInheritance = AS_IS
fTokens, fRemainder, fAt = changeTerms(fTokens, fRemainder, fAt, now, fBurst, fRateNum, fRateDen, callBurst, AS_IS, guardUntil)
fBurstBefore = fBurst
fBurst, fRateNum, fRateDen, fLength = callBurst, callRateNum, callRateDen, callLength
fenceChanged = true
conflict = false
end
end
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
local believes = unspent > 0 or returned > 0 or refund > 0 or disown > 0 or witness > 0 or since > 0
if believes and (now - sentAt > MAX_AGE or sentAt - now > MAX_SKEW) then
status = 2
break
end
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
if known and seq > hSeq and (unspent > 0 or returned > 0) and hLeaseEnd <= now and sentAt < hLeaseEnd then
status = 2
break
end
local answered = known and seq == hSeq
local lacksWindow = callRule == CALENDAR and (now < callStart or now >= callEnd) and not (main and now < wEnd)
if not answered and lacksWindow then
status = 2
break
end
if not answered then
local spent = 0
if not main then
tokens, remainder, at = fTokens, fRemainder, fAt
outstanding, lastEnd, sweepAt, expiresAt, members, slotAt = 0, 0, MAX_SAFE_INTEGER, 0, 0, 0
reservedFor, reserved, reservedUntil = '', 0, 0
sweepCursor, sweepNext = false, MAX_SAFE_INTEGER
version, burst, rateNum, rateDen = fVersion, fBurst, fRateNum, fRateDen
era, incarnation, longestLease, paidUntil = partitionEra, now, 0, 0
classes = {}
termsChanged = true
if callRule ~= 0 then
tokens, remainder, at = 0, 0, now
wLength, wStart, wEnd, wCurrent, wPrevious, wLastFrom, clearedAt, log = fLength, 0, 0, 0, 0, 0, 0, ''
if callRule > CALENDAR then
local birth = max(bornAt, guardUntil)
if callRule == LOG then
if bornAt > 0 and birth + wLength > now then
wCurrent, wLastFrom, log = burst, birth, struct.pack('>dd', birth, burst)
end
else
wStart = now - math.fmod(now, wLength)
if bornAt > 0 then
local begun = birth - math.fmod(birth, wLength)
if begun >= wStart then
wStart, wCurrent = begun, burst
elseif begun == wStart - wLength then
wPrevious = burst
end
end
wEnd = wStart + wLength
end
end
end
end
if era ~= partitionEra then
if callRule == 0 then
tokens = min(tokens, 0)
remainder = 0
at = max(at, bornAt)
else
if callRule <= CALENDAR then
tokens = min(tokens, 0)
elseif callRule == LOG then
local logged = burst - outstanding - min(tokens, 0)
wCurrent, log = 0, ''
if logged > 0 then
wLastFrom = max(bornAt, guardUntil)
wCurrent, log = logged, struct.pack('>dd', wLastFrom, logged)
end
tokens = burst - outstanding - wCurrent
else
local counted = wPrevious == 0 and 0 or min(wPrevious, floor(wPrevious * ((wEnd - now) / wLength)) + 1)
wCurrent = wCurrent + max(0, burst - outstanding - wCurrent - counted)
tokens = burst - outstanding - wCurrent - counted
end
end
era = partitionEra
termsChanged = true
end
local rebased = at - now > MAX_SKEW
if rebased then
local latest = now + longestLease + leaseGrace(longestLease)
if callRule ~= 0 then
if callRule <= CALENDAR then
if now < wStart then wStart, wEnd = windowAt(callRule, wLength, callStart, callEnd, now) end
clearedAt = min(clearedAt, now)
latest = min(latest, wEnd)
elseif callRule == LOG then
local entries = {}
for place = 1, #log, 16 do
local time, amount = struct.unpack('>dd', log, place)
entries[#entries + 1] = struct.pack('>dd', min(time, now), amount)
end
log = table.concat(entries)
wLastFrom = min(wLastFrom, now)
else
wCurrent, wPrevious = wCurrent + wPrevious, 0
wStart = now - math.fmod(now, wLength)
wEnd = wStart + wLength
end
end
at = now
lastEnd = min(lastEnd, latest)
slotAt = min(slotAt, now)
paidUntil = min(paidUntil, now)
reservedUntil = min(reservedUntil, now)
sweepAt = now
sweepCursor = false
termsChanged = true
end
if callRule == 0 then
if guardUntil == 0 then
tokens, remainder, at = refill(tokens, remainder, at, now, rateNum, rateDen, burst - outstanding)
else
tokens, remainder, at = refillGuarded(tokens, remainder, at, now, rateNum, rateDen, burst, outstanding, guardUntil)
end
else
if callRule <= CALENDAR then
if now >= wEnd then
outstanding = 0
wStart, wEnd = windowAt(callRule, wLength, callStart, callEnd, now)
clearedAt = wStart
if callRule == FIRST_USE and bornAt > 0 and now < bornAt + wLength then
wEnd = bornAt + wLength
tokens = 0
else
tokens = bornAt > wStart and 0 or burst
end
end
elseif callRule == LOG then
local left = 0
while left < #log do
local time, amount = struct.unpack('>dd', log, left + 1)
if time + wLength > now then break end
wCurrent = wCurrent - amount
left = left + 16
end
if left > 0 then log = string.sub(log, left + 1) end
tokens = burst - outstanding - wCurrent
else
if now >= wEnd then
wPrevious = now < wEnd + wLength and wCurrent or 0
wCurrent = 0
wStart = now - math.fmod(now, wLength)
wEnd = wStart + wLength
end
local counted = wPrevious == 0 and 0 or min(wPrevious, floor(wPrevious * ((wEnd - now) / wLength)) + 1)
tokens = burst - outstanding - wCurrent - counted
end
at = max(at, now)
end
if now >= sweepAt then
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
if callRule ~= 0 and callRule <= CALENDAR then latest = min(latest, wEnd) end
for j = 1, #fields, 2 do
local id = fields[j]
if #id > 1 then
local creditAt, out, lastSeq, leaseEnd, memberUntil, demand, weight, credit, turnAt, granted, level, horizon, next,
retry, flags = unpackMessage(fields[j + 1])
leaseEnd = leaseEnd + creditAt
memberUntil = memberUntil + leaseEnd
turnAt = turnAt and turnAt + creditAt + next or 0
local clamp = rebased or (not few and leaseEnd > latest + MAX_SKEW)
if clamp then
leaseEnd = min(leaseEnd, latest)
memberUntil = min(memberUntil, latest)
creditAt = min(creditAt, now)
turnAt = min(turnAt, now)
end
local ended = out > 0 and leaseEnd <= now
if ended then
if not clearedAt or leaseEnd > clearedAt then
outstanding = outstanding - out
spent = spent + out
end
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
do
local current = fVersion == version and callVersion == fVersion
local otherTerms = burst ~= fBurst or rateNum ~= fRateNum or rateDen ~= fRateDen or (wLength or 0) ~= fLength
if fVersion > version or (current and otherTerms) then
if callRule == 0 then
tokens, remainder, at = inherit(tokens, at, now, fBurstBefore, fBurst, fInheritance, outstanding)
else
if callRule <= CALENDAR then tokens = tokens + (fBurst - burst) end
if callRule > LOG and fLength ~= wLength then
wCurrent, wPrevious = wCurrent + wPrevious, 0
wStart = now - math.fmod(now, fLength)
wEnd = wStart + fLength
end
wLength = fLength
end
version, burst, rateNum, rateDen = fVersion, fBurst, fRateNum, fRateDen
termsChanged = true
end
end
if known then
if clearedAt and hLeaseEnd <= clearedAt then
hOutstanding = 0
hLastGrant = 0
end
if disown > 0 and hSeq >= disown then
local undone = min(hLastGrant, hOutstanding)
outstanding = outstanding - undone
hOutstanding = hOutstanding - undone
tokens = tokens + undone
hCredit = hCredit + undone
end
local credited = min(returned, max(0, hOutstanding - unspent))
tokens = tokens + credited
hCredit = hCredit + credited + refund
if callRule ~= 0 then spent = spent + max(0, hOutstanding - credited - unspent) end
outstanding = outstanding + (unspent - hOutstanding)
if callDemand ~= hDemand or callWeight ~= hWeight then
leaveMembers(classes, hDemand, hWeight)
joinMembers(classes, callDemand, callWeight)
classesChanged = true
end
else
refund = 0
outstanding = outstanding + unspent
members = members + 1
hLeaseEnd, hCredit, hCreditAt, hSlotAt = 0, 0 / 0, now, 0
local lost = callIncarnation ~= incarnation and callCertainUntil > incarnation
if witness > 0 and lost and callIncarnation >= bornAt then
local charged = max(-burst, tokens - witness)
if charged < tokens then
spent = spent + (tokens - charged)
tokens = charged
end
end
joinMembers(classes, callDemand, callWeight)
classesChanged = true
end
hOutstanding, hSeq, hDemand, hWeight = unspent, seq, callDemand, callWeight
if since > 0 then
local from = max(since, paidUntil)
if now > from then
local charged = max(min(tokens, 0), tokens - ceil(((now - from) / rateDen) * rateNum))
if charged < tokens then
spent = spent + (tokens - charged)
tokens = charged
end
end
paidUntil = max(paidUntil, now)
termsChanged = true
end
local mayGrant, leaseEnd = true, now + lease + leaseGrace(lease)
if callRule == 0 then
tokens = tokens + refund
local cap = burst - outstanding
if guardUntil > 0 then cap = capUnder(burst, outstanding, guardUntil, now) end
tokens, remainder, at = capAt(tokens, remainder, at, now, cap)
else
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
end
hLeaseEnd = hOutstanding > 0 and max(hLeaseEnd, leaseEnd) or leaseEnd
do
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
if hCredit ~= hCredit then hCredit = batch end
hCredit = min(max(MICRO, 2 * batch, head), hCredit + (share * max(0, now - hCreditAt)) / MICRO)
hCreditAt = now
local lent = reservedFor == holderId
local alone = members == 1
local atOnce = callRule ~= 0 and callRule <= CALENDAR
local ask, granted = need + want, 0
do
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
local missing = head - tokens
if callRule <= CALENDAR then
local canSpend = leaseWithin(callRule, MAX_SAFE_INTEGER, wLength, wEnd, now) > 0
short = missing <= 0 and canSpend and 0 or wEnd - now
elseif callRule == LOG then
local place, leaves = 1, now
while missing > 0 and place < #log do
local time, amount = struct.unpack('>dd', log, place)
missing = missing - amount
leaves = time + wLength
place = place + 16
end
short = max(leaves - now, missing > 0 and refillTime(missing, rateNum, rateDen) or 0)
else
local counted = wPrevious == 0 and 0 or min(wPrevious, floor(wPrevious * ((wEnd - now) / wLength)) + 1)
if missing <= 0 then
short = 0
elseif counted > missing + 1 then
local part = (wEnd - now) / wLength - (counted - missing - 1) / wPrevious
short = min(wEnd - now, ceil(part * wLength) + 1)
else
local later = missing - counted
local part = later > 0 and wCurrent > 0 and min(1, (later + 1) / wCurrent) or 0
short = wEnd - now + ceil(part * wLength)
end
end
end
next = max(next, short)
retry = alone and short or next
end
hGranted = granted
hLevel = min(floor(level), MAX_SAFE_INTEGER)
hHorizon = horizon
if callRule == 0 then hHorizon = max(horizon, floor(min(60000000, horizon * max(1, (0.8 * rate) / max(1, asked))))) end
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
local fullAt
if callRule == 0 then
fullAt = max(
max(now, guardUntil) + refillTime(burst - tokens, rateNum, rateDen),
lastEnd + refillTime(outstanding, rateNum, rateDen)
)
elseif callRule <= CALENDAR then
fullAt = wEnd
elseif callRule == LOG then
fullAt = max(
#log > 0 and struct.unpack('>d', log, #log - 15) + wLength or now,
outstanding > 0 and lastEnd + wLength or now
)
else
fullAt = max(
wCurrent > 0 and wEnd + wLength or (wPrevious > 0 and wEnd or now),
outstanding > 0 and lastEnd + 2 * wLength or now
)
end
local needed = max(fullAt, lastEnd + MAX_AGE, since > 0 and paidUntil or 0)
if needed > expiresAt then
expiresAt = needed + KEEP_LONGER
expiryMoved = true
end
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
if expiryMoved then redis.call('PEXPIRE', bucketKey, ceil((expiresAt - now) / 1000) + 1) end
end
if version > fVersion then fVersion, fBurst, fRateNum, fRateDen = version, burst, rateNum, rateDen end
if callRule ~= 0 then
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
`,
};

export const heartbeatScript: EmbeddedScript = {
  name: 'heartbeat',
  sha1: '4e7cfa27d1ad518231dbf81ae65a890c3dd0341a',
  source: `local time = redis.call('TIME')
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
  sha1: 'e08555effe64ca6c5192cf0404c2b5b3817d4b5c',
  source: `local time = redis.call('TIME')
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

export const paceScript: EmbeddedScript = {
  name: 'pace',
  sha1: 'd1fc6dfc2f00f93b20cac3082d1dab976cc9e047',
  source: `local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local MAX_SKEW, ANSWER_KEPT, TERMS_KEPT = 100000, 1000000, 3600000000
local ceil, max = math.ceil, math.max
local function text(numbers)
for i = 1, #numbers do numbers[i] = string.format('%.0f', numbers[i]) end
return table.concat(numbers, ' ')
end
local function numbersOf(packed)
local numbers = {}
for number in string.gmatch(packed, '%S+') do numbers[#numbers + 1] = tonumber(number) end
return numbers
end
local replies = {}
for i = 1, #KEYS do
local key, a = KEYS[i], (i - 1) * 7
local id, seq, version = ARGV[a + 1], tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
local rateNum, rateDen, queue = tonumber(ARGV[a + 4]), tonumber(ARGV[a + 5]), tonumber(ARGV[a + 6])
local costs = numbersOf(ARGV[a + 7])
local next, at = now, now
local mine
local dropped = { 'HDEL', key }
local fields = redis.call('HGETALL', key)
for f = 1, #fields, 2 do
local numbers = numbersOf(fields[f + 1])
if fields[f] == 'v' then
next, at = numbers[5], numbers[6]
if at - now > MAX_SKEW then
next = next - (at - now)
at = now
end
at = max(at, now)
local newer = version > numbers[1]
local known = version >= numbers[1]
if not (newer or (known and rateNum / rateDen < numbers[2] / numbers[3])) then
rateNum, rateDen = numbers[2], numbers[3]
end
if not (newer or (known and queue < numbers[4])) then queue = numbers[4] end
version = max(version, numbers[1])
elseif numbers[2] + ANSWER_KEPT <= now then
dropped[#dropped + 1] = fields[f]
elseif fields[f] == id then
mine = numbers
end
end
if #dropped > 2 then redis.call(unpack(dropped)) end
local status, slots = 0, {}
if mine and seq < mine[1] then
status = 1
elseif mine and seq == mine[1] then
for place = 3, #mine do slots[#slots + 1] = mine[place] end
else
local longest = ceil((queue / rateNum) * rateDen)
for place = 1, #costs do
local slot = max(now, next)
if slot - now > longest then break end
slots[#slots + 1] = slot
next = slot + ceil((costs[place] / rateNum) * rateDen)
end
local answer = { seq, now }
for place = 1, #slots do answer[place + 2] = slots[place] end
redis.call('HSET', key, id, text(answer))
end
redis.call('HSET', key, 'v', text({ version, rateNum, rateDen, queue, next, at }))
redis.call('PEXPIRE', key, string.format('%.0f', ceil((max(next, at) + TERMS_KEPT - now) / 1000)))
local reply = { status, seq, now, max(0, next - now), version }
for place = 1, #slots do reply[#reply + 1] = slots[place] end
replies[i] = reply
end
return replies
`,
};

export const marksScript: EmbeddedScript = {
  name: 'marks',
  sha1: '0e4744c7e5688533ed9657efd07ba94ae39f42b5',
  source: `local IDENTIFY = ARGV[1] == '1'
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local SERVER = ''
if IDENTIFY then
local info = redis.pcall('INFO', 'replication')
if type(info) == 'string' then SERVER = string.match(info, 'master_replid:(%x+)') or '' end
end
local FOREVER, KEPT, A_PAGE, GO_AT_ONCE = 8000000000000000, 60000000, 256, 256
local max, min = math.max, math.min
local records, bySeq, byEnd = KEYS[1], KEYS[2], KEYS[3]
local function words(packed)
local found = {}
for word in string.gmatch(packed or '', '%S+') do found[#found + 1] = word end
return found
end
local function numbersOf(packed)
local numbers = words(packed)
for i = 1, #numbers do numbers[i] = tonumber(numbers[i]) end
return numbers
end
local function text(...)
return string.format(string.rep('%.0f ', select('#', ...)), ...)
end
local head = words(redis.call('HGET', records, '@'))
local era, server, born, last, floor = head[1], head[2], tonumber(head[3]), tonumber(head[4]), tonumber(head[5])
local packedHead
local function writeHead()
local packed = era .. ' ' .. server .. ' ' .. text(born, last, floor)
if packed ~= packedHead then redis.call('HSET', records, '@', packed) end
packedHead = packed
end
if not era then
redis.call('UNLINK', records, bySeq, byEnd)
era, server, born, last, floor = ARGV[2], '-', 0, 0, 0
else
packedHead = table.concat(head, ' ') .. ' '
end
if SERVER ~= '' and server ~= SERVER then
if server ~= '-' then era, born = ARGV[2], last end
server = SERVER
end
local over = redis.call('ZRANGEBYSCORE', byEnd, '-inf', string.format('%.0f', now), 'LIMIT', 0, GO_AT_ONCE)
for i = 1, #over do
floor = max(floor, tonumber(redis.call('ZSCORE', bySeq, over[i])) or 0)
redis.call('HDEL', records, over[i])
redis.call('ZREM', bySeq, over[i])
redis.call('ZREM', byEnd, over[i])
end
if ARGV[3] == 'feed' then
local asked = tonumber(ARGV[5])
local fresh = ARGV[4] ~= era or asked > last or (asked < floor and ARGV[6] ~= '1')
local from = fresh and 0 or asked
local names = redis.call('ZRANGEBYSCORE', bySeq, string.format('(%.0f', from), '+inf', 'LIMIT', 0, A_PAGE + 1)
local more = #names > A_PAGE
local reply = { era, born, now, fresh and 1 or 0, last, more and 1 or 0 }
for i = 1, min(#names, A_PAGE) do
local r = numbersOf(redis.call('HGET', records, names[i]))
reply[#reply + 1] = names[i]
for _, number in ipairs({ r[1], r[2], r[4], r[6] }) do reply[#reply + 1] = number end
if more then reply[5] = r[1] end
end
writeHead()
return reply
end
local kind, name = ARGV[3], ARGV[4]
local r = numbersOf(redis.call('HGET', records, name))
local till, ended, step, forgetAfter, reset = r[2] or 0, r[3] or 0, r[4] or 0, r[5] or 0, r[6] or 0
local blocked = till > now
if not blocked and ended + forgetAfter <= now then step = 0 end
last = last + 1
if kind == 'block' then
local steps, place = numbersOf(ARGV[6]), 1
if tonumber(ARGV[5]) > 0 then
if not blocked then step = min(step + 1, #steps) end
forgetAfter = tonumber(ARGV[5])
place = max(1, min(step, #steps))
end
local longest = min(FOREVER, now + steps[place])
till = blocked and max(till, longest) or longest
ended = till
else
till = 0
ended = min(ended, now)
if kind == 'reset' then step, reset = 0, last end
end
local remembered = step > 0 and ended + forgetAfter or till
redis.call('HSET', records, name, text(last, till, ended, step, forgetAfter, reset))
redis.call('ZADD', bySeq, string.format('%.0f', last), name)
redis.call('ZADD', byEnd, string.format('%.0f', min(FOREVER, max(remembered, now + KEPT))), name)
writeHead()
return { era, now, last, till, step, reset }
`,
};

export const embeddedScripts: readonly EmbeddedScript[] = [leaseScript, heartbeatScript, seatsScript, paceScript, marksScript];
