#!lua
-- Tags an open interrupt of a store that was migrated, or puts its members back when it has its tags.
--
-- KEYS   1 interrupts  2 tags
-- ARGV   1 id  2 the record that the tags are of  3 tags (see layout.EncodeTags)
--        then the members of tags
-- Returns 1 when the interrupt is as the caller knows it, and has its members
local call = redis.call
local old = call('HGET', KEYS[1], 'r' .. ARGV[1])
if not old then return {0} end
local head, record = string.match(old, '^(%d+ %d+ %x+) (.*)$')
if not head then
  local size, first = string.match(old, '^%d+ %d+ %x+:(%d+) ()')
  if not size or string.sub(old, first) ~= ARGV[3] .. ARGV[2] then return {0} end
elseif record ~= ARGV[2] then
  return {0}
else
  call('HSET', KEYS[1], 'r' .. ARGV[1], head .. ':' .. #ARGV[3] .. ' ' .. ARGV[3] .. record)
end
for i = 4, #ARGV do call('ZADD', KEYS[2], '0', ARGV[i]) end
return {1}
