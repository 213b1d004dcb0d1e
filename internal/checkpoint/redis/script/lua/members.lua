#!lua flags=no-writes
-- Lists members of one index of a partition together with the present.
--
-- KEYS   1 or more sorted sets that are ordered by their members
-- ARGV   1 where to begin, in the form of ZRANGEBYLEX  2 limit
-- Returns present in microseconds, then per key its members in order
local clock = redis.call('TIME')
local found = {string.format('%.0f', clock[1] * 1000000 + clock[2])}
for i, key in ipairs(KEYS) do
  found[i + 1] = redis.call('ZRANGEBYLEX', key, ARGV[1], '+', 'LIMIT', 0, ARGV[2])
end
return found
