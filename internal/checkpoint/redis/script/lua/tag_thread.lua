#!lua
-- Gives a thread of a store that was migrated its tags, or puts their members back when it has them.
--
-- KEYS   1 head  2 threadtags
-- ARGV   1 the revision that the tags are of  2 tags (see layout.EncodeThreadTags)
--        3 state, then the members of both
-- Returns 1 when the thread is as the caller knows it, and has its members
local call = redis.call
local s = call('HGET', KEYS[1], 'n')
s = s and cmsgpack.unpack(s)
if not s or string.format('%.0f', s[1]) ~= ARGV[1] then return {0} end
if s[15] ~= ARGV[2] or s[16] ~= ARGV[3] then
  s[15], s[16] = ARGV[2], ARGV[3]
  call('HSET', KEYS[1], 'n', cmsgpack.pack(s))
end
for i = 4, #ARGV do call('ZADD', KEYS[2], '0', ARGV[i]) end
return {1}
