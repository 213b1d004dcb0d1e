-- Changes what stands for a version of a graph: a record, a tombstone, or nothing.
-- KEYS: graphs, index of graphs, tombstones, their order.
-- ARGV: field; the record and the tombstone that stand there, '' = none; the
-- record to keep, '' = to delete it; when that was made, or the tombstone to
-- keep; how many tombstones are kept; how many changes of graphs there have been,
-- '' = any number.
-- Returns 1, or 0 when something else stands there, or there were other changes.
local call = redis.call
local field, most = ARGV[1], tonumber(ARGV[6])
if (call('HGET', KEYS[1], field) or '') ~= ARGV[2] or (call('HGET', KEYS[3], field) or '') ~= ARGV[3] then
  return 0
end
if ARGV[7] ~= '' and (call('HGET', KEYS[2], '') or '0') ~= ARGV[7] then
  return 0
end
local change = call('HINCRBY', KEYS[2], '', 1)
if ARGV[4] ~= '' then
  call('HSET', KEYS[1], field, ARGV[4])
  call('HSET', KEYS[2], field, ARGV[5])
  call('HDEL', KEYS[3], field)
  call('ZREM', KEYS[4], field)
  return 1
end
call('HDEL', KEYS[1], field)
call('HDEL', KEYS[2], field)
local clock = call('TIME')
call('HSET', KEYS[3], field, string.format('%d%06d ', clock[1], clock[2]) .. ARGV[5])
call('ZADD', KEYS[4], change, field)
local oldest = call('ZRANGE', KEYS[4], 0, -most - 1)
for i = 1, #oldest do
  call('HDEL', KEYS[3], oldest[i])
  call('ZREM', KEYS[4], oldest[i])
end
return 1
