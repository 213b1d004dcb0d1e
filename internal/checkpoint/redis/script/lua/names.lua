#!lua flags=no-writes
-- Lists names of fields of a hash, some at a time: others wait meanwhile.
--
-- KEYS   1 hash
-- ARGV   1 cursor, 0 = begin  2 about how many
-- Returns the next cursor, 0 = that was all, then names; one that is there all the time comes at least once
local page, step = redis.pcall('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2], 'NOVALUES'), 1
if page.err then -- before 7.4 there are no names alone
  page, step = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2]), 2
end
local found = {page[1]}
for i = 1, #page[2], step do found[#found + 1] = page[2][i] end
return found
