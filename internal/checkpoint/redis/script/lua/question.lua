#!lua flags=no-writes
-- Reads an interrupt, unless it is large.
--
-- KEYS   1 interrupts
-- ARGV   1 field  2 bytes that are large
-- Returns its length, 0 without it, and the record or nil
local length = redis.call('HSTRLEN', KEYS[1], ARGV[1])
if length >= tonumber(ARGV[2]) then return {length, false} end
return {length, redis.call('HGET', KEYS[1], ARGV[1])}
