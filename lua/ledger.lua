-- Part of the body of lease.lua: the escrow ledger of one bucket. T tokens in it, O outstanding, T + O <= B.
--
-- Needs: the call, the fence (f…), the bucket and, where `known`, the caller's record (h…) in their variables; `main`
--   where the bucket is there. Sets: what of them changes; termsChanged,
--   classesChanged, expiryMoved.
-- Keeps: rule 8 (refill first, with the old O, then lease ends), rule 7 (creating a holder ignores what it gives back), rule 4
--   (a lost grant is taken back when disowned, and only then), rule 11 (expiry).
-- Twin of: execute() in src/ceiling/ledger.ts and what it calls, which has the reasons; only the sweep of ended leases
--   differs, beyond FEW_HOLDERS. Clock: `now`. Writes nothing. Used by: lease.lua.
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
--- @include "window-begin"
  end
end
if era ~= partitionEra then
  if callRule == 0 then
    tokens = min(tokens, 0)
    remainder = 0
    at = max(at, bornAt)
  else
--- @include "window-suspect"
  end
  era = partitionEra
  termsChanged = true
end
local rebased = at - now > MAX_SKEW
if rebased then
  local latest = now + longestLease + leaseGrace(longestLease)
  if callRule ~= 0 then
--- @include "window-rebase"
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
--- @include "window-refill"
  at = max(at, now)
end
if now >= sweepAt then
--- @include "sweep"
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

-- What the holder says of itself.
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
  -- `returned` and `refund` are ignored: where the record is gone the tokens have been counted as spent.
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

-- The first to come back from an outage in share mode pays for the whole fleet.
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
--- @include "window-settle"
end

hLeaseEnd = hOutstanding > 0 and max(hLeaseEnd, leaseEnd) or leaseEnd
do
--- @include "allotment"
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
