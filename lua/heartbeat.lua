-- Counts a limiter as alive in its group, and says how many are.
--
-- KEYS[1]  sorted set  {hg:fleet}:<group>   members' ids by the store time they were last heard of (ms)
-- ARGV[1]  member      random id of the limiter
-- ARGV[2]  ttl         ms, whole, positive: who has not been heard of for longer is dropped
-- Returns how many are left, the caller included; at least 1.
--
-- Keeps: nobody is counted later than ttl after the last heartbeat. A clock that stepped back drops nobody early; who
--   was heard of "in the future" is taken to have been heard of now. Clock: Redis TIME, once. Expiry: ttl, at each call.
-- Caller: src/ceiling/redis-ceiling.ts.
--- @include "clock"
local ttl = tonumber(ARGV[2])
local nowMs = math.floor(now / 1000)
local ahead = redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', nowMs), '+inf')
for i = 1, #ahead do redis.call('ZADD', KEYS[1], string.format('%.0f', nowMs), ahead[i]) end
redis.call('ZADD', KEYS[1], string.format('%.0f', nowMs), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', nowMs - ttl))
redis.call('PEXPIRE', KEYS[1], ttl)
return redis.call('ZCARD', KEYS[1])
