#!lua flags=no-writes
-- Reads the head of a thread together with the present.
--
-- KEYS   1 head
-- Returns present in microseconds, revision, end of the lease, record; the last three are nil without a thread
local clock = redis.call('TIME')
local h = redis.call('HMGET', KEYS[1], 'rev', 'lx', 'head')
return {string.format('%.0f', clock[1] * 1000000 + clock[2]), h[1], h[2], h[3]}
