#!lua flags=no-writes
-- Lists due threads of a partition, longest due first, without some of the first, and says how many there are.
--
-- KEYS   1 due
-- ARGV   1 how many to skip  2 limit
-- Returns present in microseconds, the members of those that are due, how many are due, the member of the first,
--         and that of the next that will be due, '' = none
local clock = redis.call('TIME')
local present = string.format('%.0f', clock[1] * 1000000 + clock[2])
local now = present .. '000\255'
local first = redis.call('ZRANGEBYLEX', KEYS[1], '-', '[' .. now, 'LIMIT', 0, 1)[1] or ''
local coming = redis.call('ZRANGEBYLEX', KEYS[1], '(' .. now, '+', 'LIMIT', 0, 1)[1] or ''
if first == '' then return {present, {}, 0, '', coming} end
local count = redis.call('ZLEXCOUNT', KEYS[1], '-', '[' .. now)
local listed = {}
if count > tonumber(ARGV[1]) then
  listed = redis.call('ZRANGEBYLEX', KEYS[1], '-', '[' .. now, 'LIMIT', ARGV[1], ARGV[2])
end
return {present, listed, count, first, coming}
