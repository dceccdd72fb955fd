-- Who answers: tells data that may be stale (a promoted replica, a server that came back without its last writes).
--
-- Provides: `SERVER`, the server's replication id: random, another one after each start and each promotion; '' where
--   INFO does not say or may not be called (then IDENTIFY is false, so that nothing is tried and logged in vain).
-- Read by the script itself, and not once a connection by the client: what a client re-sends after a reconnect runs on
--   the server it did not mean. Costs 2 to 3 µs a script. Writes nothing. Clock: none.
-- Used by: lease.lua. Tests put server-from-argument.lua in its place.
local SERVER = ''
if IDENTIFY then
  local info = redis.pcall('INFO', 'replication')
  if type(info) == 'string' then SERVER = string.match(info, 'master_replid:(%x+)') or '' end
end
