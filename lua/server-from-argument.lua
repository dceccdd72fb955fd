-- A server's identity for tests, which must be able to become another one. Never part of a script that is shipped.
--
-- ARGV[#ARGV - 1]  server   any text; '' unknown
-- Provides: `SERVER`, as server.lua does. Clock: none. Used by: test/lua, in place of server.lua.
local SERVER = ARGV[#ARGV - 1]
