-- A clock for tests, which must be able to say what time it is. Never part of a script that is shipped.
--
-- ARGV[#ARGV]  now   microseconds, whole, below 2^53: one argument behind those of the script itself
-- Provides: `now`, as clock.lua does. Reads no clock.
-- Used by: test/lua, in place of clock.lua.
local now = tonumber(ARGV[#ARGV])
