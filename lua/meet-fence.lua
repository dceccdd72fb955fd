-- Part of the body of lease.lua: holds a call's terms against the fence, which is in the variables f….
--
-- Sets: f…; fenceChanged, whether the header must be written; conflict, whether terms of one version disagree.
-- Keeps: a higher version takes over at once, a lower one changes nothing, under the same version the stricter rate and
--   burst win, for as long as anybody stands for them.
-- Twin of: meetFence() of src/ceiling/fence.ts, which has the reasons. Clock: `now`. Used by: lease.lua.
local sameRate = callRateNum == fRateNum and callRateDen == fRateDen and callLength == fLength

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
    -- It stands for a part of the stricter terms, or nobody has yet.
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
