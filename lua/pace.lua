-- Reserves slots for a tick's worth of callers of one limiter, so that a fleet's requests leave evenly.
--
-- KEYS[i]  hash  {hg:<p>}:p:<policy>:<key>   schedule of call i
-- then seven arguments a call:
--   holder     random id of the limiter, 8 characters or more
--   seq        whole, from 1: a repeat gets the same slots, an older call none
--   version    of the policy, whole
--   rateNum, rateDen   micro-tokens per microsecond, a fraction of whole, positive numbers
--   queue      µtok, whole: most that may lie ahead of a caller
--   costs      a list as text, with spaces between: µtok, whole, positive
-- Returns one array a call: status (0 reserved, 1 stale), seq, now µs, behind µs, version, then the slots, µs, in the
--   order of the costs; those beyond the last found the queue full.
--
-- Fields, numbers as text:
--   v            version rateNum rateDen queue next at
--   <holder id>  seq at slot…
--
-- Keeps: slots of a key are never closer together than cost / rate. Clock: Redis TIME, once. Expiry: an hour after the
--   last slot, so that its version is remembered.
-- Caller: src/ceiling/redis-pace.ts. Model: src/ceiling/pace-ledger.ts, statement for statement.
--- @include "clock"
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
