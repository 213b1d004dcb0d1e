-- Keeps a record of a version of a graph in place of another one.
-- KEYS: graphs, index of graphs.
-- ARGV: field; the record that stands there, '' = none; the new record; what
-- the index says of it.
-- Returns 1, or 0 when another record stands there.
local found = redis.call('HGET', KEYS[1], ARGV[1])
if (found or '') ~= ARGV[2] then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[4])
redis.call('HINCRBY', KEYS[2], '', 1)
return 1
