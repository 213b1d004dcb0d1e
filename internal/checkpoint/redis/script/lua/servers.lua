#!lua flags=no-writes
-- Counts servers that use a store.
--
-- KEYS   1 membership
-- ARGV   1 announcement channel
-- Returns how many connections listen to it, and the members whose entry has not expired
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local listening = redis.call('PUBSUB', 'SHARDNUMSUB', ARGV[1])
local found = {listening[2] or 0}
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if tonumber(string.match(all[i + 1], '^%d+') or '0') > now then found[#found + 1] = all[i] end
end
return found
