#!lua flags=no-writes
-- Finds checkpoints, newest first.
--
-- KEYS   1 head  2 values  3 order
-- ARGV   1 prefix of the members  2 how many of path and namespace follow it
--        3 numbers smaller than this, in the form of ZRANGEBYSCORE  4 limit, 0 = all
--        5 bytes of manifests after which there are enough, 0 = never
-- Returns the generation, then id and manifest of each
local s = redis.call('HGET', KEYS[1], 'n')
s = s and cmsgpack.unpack(s)
local found = {s and s[11] .. '/' .. string.format('%.0f', s[6]) or '/'}
local prefix, limit, offset = ARGV[1], tonumber(ARGV[4]), 0
local left = tonumber(ARGV[5])
if left == 0 then left = math.huge end
while true do
  local members = redis.call('ZREVRANGEBYSCORE', KEYS[3], ARGV[3], '-inf', 'LIMIT', offset, 64)
  for _, member in ipairs(members) do
    if string.sub(member, 1, #prefix) == prefix then
      local id = string.sub(member, #prefix + 1)
      for _ = 1, tonumber(ARGV[2]) do
        local space = string.match(id, '^%d+')
        id = string.sub(id, #space + 2 + space)
      end
      found[#found + 1] = id
      local manifest = redis.call('HGET', KEYS[2], 'c' .. id)
      found[#found + 1] = manifest
      limit = limit - 1
      left = left - (manifest and #manifest or 0)
      if limit == 0 or left <= 0 then return found end
    end
  end
  if #members < 64 then return found end
  offset = offset + 64
end
