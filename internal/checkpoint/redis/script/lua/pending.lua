#!lua flags=no-writes
-- Reads the progress after a checkpoint.
--
-- KEYS   1 progress  2 interrupts
-- ARGV   1 checkpoint  2 prefix of its progress
-- Returns fields and records of progress as one list; then id and record of each interrupt
local done, asked = {}, {}
local prefix = ARGV[2]
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(field, 1, #prefix) == prefix then
    done[#done + 1] = string.sub(field, #prefix + 1)
    done[#done + 1] = redis.call('HGET', KEYS[1], field)
  end
end
local ids = redis.call('HGET', KEYS[2], 'a' .. ARGV[1])
if ids then
  for _, id in ipairs(cmsgpack.unpack(ids)) do
    asked[#asked + 1] = id
    asked[#asked + 1] = redis.call('HGET', KEYS[2], 'r' .. id)
  end
end
return {done, asked}
