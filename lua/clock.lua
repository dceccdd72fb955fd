-- The store's clock, read once a script: what everything in it is dated with.
--
-- Provides: `now`, microseconds since the Unix epoch, whole. Clock: Redis TIME, which is wall time and may step; on
--   Redis 7.0 it moves even within a script, so nothing else may read it.
-- Used by: lease.lua, heartbeat.lua, seats.lua. Tests put clock-from-argument.lua in its place.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
