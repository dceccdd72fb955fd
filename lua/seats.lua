-- Executes a tick's worth of calls of one limiter about seats: how many requests are in flight for a key, fleet-wide.
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
--- @include "clock"
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
