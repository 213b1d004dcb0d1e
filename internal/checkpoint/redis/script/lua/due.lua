#!lua flags=no-writes
-- Lists the due threads of a partition, longest due first, and the one that is due next.
--
-- KEYS   1 due
-- ARGV   1 limit, -1 = none
-- Returns the members of those that are due, and the member of the next one, '' = none
local clock = redis.call('TIME')
local now = string.format('%.0f000', clock[1] * 1000000 + clock[2]) .. '\255'
local passed = redis.call('ZRANGEBYLEX', KEYS[1], '-', '[' .. now, 'LIMIT', 0, ARGV[1])
local coming = redis.call('ZRANGEBYLEX', KEYS[1], '(' .. now, '+', 'LIMIT', 0, 1)
return {passed, coming[1] or ''}
