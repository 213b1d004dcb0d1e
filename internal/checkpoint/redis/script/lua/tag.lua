#!lua
-- Tags an open interrupt that has no tags: one that was migrated.
--
-- KEYS   1 interrupts  2 tags
-- ARGV   1 id  2 the record that the tags are of  3 tags (see layout.EncodeTags)
--        then the members of tags
-- Returns 1 when it was tagged
local call = redis.call
local old = call('HGET', KEYS[1], 'r' .. ARGV[1])
if not old then return {0} end
local head, record = string.match(old, '^(%d+ %d+ %x+) (.*)$')
if record ~= ARGV[2] then return {0} end
call('HSET', KEYS[1], 'r' .. ARGV[1], head .. ':' .. #ARGV[3] .. ' ' .. ARGV[3] .. record)
for i = 4, #ARGV do call('ZADD', KEYS[2], 0, ARGV[i]) end
return {1}
