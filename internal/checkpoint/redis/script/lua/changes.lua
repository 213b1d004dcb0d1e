#!lua flags=allow-oom
-- Lists interrupts of a partition by the number of their last change.
--
-- KEYS   1 inbox  2 count  3 store
-- ARGV   1 first number  2 limit  3 number that every later change shall exceed, '' = as it is
--        4 the store that is meant: in another one nothing is raised
-- Returns number of the last change, then member and number of each interrupt
local count = tonumber(redis.call('GET', KEYS[2]) or '0')
if ARGV[3] ~= '' and count < tonumber(ARGV[3]) and redis.call('GET', KEYS[3]) == ARGV[4] then
  count = tonumber(ARGV[3])
  redis.call('SET', KEYS[2], ARGV[3])
end
local found = {string.format('%.0f', count)}
local list = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
for i = 1, #list, 2 do
  found[#found + 1] = list[i]
  found[#found + 1] = string.format('%.0f', list[i + 1])
end
return found
