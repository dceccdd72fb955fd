-- Part of the body of lease.lua: ends leases that are over (counted as spent, never credited) and drops records nothing
-- can refer to any more.
--
-- Sets: outstanding, members, classes, sweepAt…; known and h… of the caller's own record; changed (field, value, …) and
--   dropped (fields), for lease.lua to write.
-- Twin of: sweep() and the second half of rebase() in src/ceiling/ledger.ts, for up to FEW_HOLDERS holders. Beyond it
--   each call looks at about SWEEP_COUNT of them, so that none takes long: a lease that is ended late is only tokens
--   that wait. Clock: `now`. Reads the bucket's hash. Used by: ledger.lua.
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
      -- What was out when its window ended has been cleared with it.
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
