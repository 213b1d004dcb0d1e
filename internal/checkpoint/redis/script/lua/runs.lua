#!lua flags=no-writes
-- Lists runs, newest first.
--
-- KEYS   1 records  2 runs
-- ARGV   1 orders smaller than this, in the form of ZRANGEBYSCORE  2 limit, -1 = all
--        3 bytes after which there are enough, 0 = never
-- Returns id, record and input of each
local found, left = {}, tonumber(ARGV[3])
if left == 0 then left = math.huge end
for _, id in ipairs(redis.call('ZREVRANGEBYSCORE', KEYS[2], ARGV[1], '-inf', 'LIMIT', 0, ARGV[2])) do
  found[#found + 1] = id
  local r = redis.call('HMGET', KEYS[1], 'r' .. id, 'i' .. id)
  for k = 1, 2 do
    found[#found + 1] = r[k]
    left = left - (r[k] and #r[k] or 0)
  end
  if left <= 0 then return found end
end
return found
