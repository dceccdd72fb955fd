-- Part of the body of lease.lua: the escrow ledger of one bucket. T tokens in it, O outstanding, T + O <= B.
--
-- Needs: the call, the fence (f…), the bucket and, where `known`, the caller's record (h…) in their variables; `main`
--   where the bucket is there. Sets: what of them changes; termsChanged,
--   classesChanged, expiryMoved.
-- Keeps: rule 8 (refill first, with the old O, then lease ends), rule 7 (creating a holder ignores `returned`), rule 4
--   (a lost grant is taken back when disowned, and only then), rule 11 (expiry).
-- Twin of: execute() in src/ceiling/ledger.ts and what it calls, which has the reasons; only the sweep of ended leases
--   differs, beyond FEW_HOLDERS. Clock: `now`. Writes nothing. Used by: lease.lua.
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
--- @include "sweep"
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
  -- `returned` is ignored: where the record is gone the tokens have been counted as spent.
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
local needed = max(
  max(now, guardUntil) + refillTime(burst - tokens, rateNum, rateDen),
  lastEnd + max(refillTime(outstanding, rateNum, rateDen), MAX_AGE),
  since > 0 and paidUntil or 0
)
if needed > expiresAt then
  expiresAt = needed + KEEP_LONGER
  expiryMoved = true
end
