-- Blocks, unblocks or resets a key for the whole fleet, or tells a limiter what has changed since it last asked.
--
-- KEYS[1]  hash        {hg:marks}:m   what holds for each key
-- KEYS[2]  sorted set  {hg:marks}:s   their names by number
-- KEYS[3]  sorted set  {hg:marks}:e   their names by when they may go, µs
-- ARGV[1]  identify    '1': notice that the data may be stale (server.lua); '0': no need, or not permitted
-- ARGV[2]  newEra      random text: the identity of the data, should it begin with this call
-- ARGV[3]  kind        block, unblock, reset or feed
-- then of block        <policy>:<key>, forgetAfter µs (0: no ladder), steps µs (a list as text, with spaces between)
--      of the others   <policy>:<key>
--      of feed         era and number up to which the caller knows all; whether it is reading from the start, 0 or 1
-- Returns of feed: era, born, now µs, fresh (0 or 1), number up to where this page goes, more (0 or 1), and for each mark
--   name, number, until µs, step, reset number. Of the others: era, now µs, number, until µs, step, reset number.
--
-- Fields of the hash, numbers as text:
--   @                era, replication id of the server that last answered (or -), born, number, floor
--   <policy>:<key>   number until over step forgetAfter reset
--
-- Keeps: a block never shortens one that is under way, and climbs its ladder only where none is; whoever asks from below
--   the floor, the highest number whose record is gone, is told to read from the start, unless it does. Clock: Redis TIME, once. Expiry:
--   none; what is over goes with the calls, some at each.
-- Caller: src/ceiling/redis-marks.ts. Model: src/ceiling/mark-ledger.ts, statement for statement.
local IDENTIFY = ARGV[1] == '1'
--- @include "clock"
--- @include "server"
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
  -- Another server answers than the last time, so what it has may be older than what has been told: a new era.
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
