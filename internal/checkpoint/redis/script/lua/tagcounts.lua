#!lua flags=no-writes
-- Counts the members of ranges of tags of a partition.
--
-- KEYS   1 tags
-- ARGV   begin and end of each range, in the form of ZLEXCOUNT
-- Returns their numbers
local found = {}
for i = 1, #ARGV, 2 do found[#found + 1] = redis.call('ZLEXCOUNT', KEYS[1], ARGV[i], ARGV[i + 1]) end
return found
