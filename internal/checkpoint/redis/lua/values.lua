#!lua flags=no-writes
-- Reads fields of a thread's values.
--
-- KEYS   1 head  2 values
-- ARGV   the fields
-- Returns the generation, then the value of each field or nil. What is written under one generation never
--         changes, so reads of the same generation belong together.
local found = {(redis.call('HGET', KEYS[1], 'log') or '') .. '/' .. (redis.call('HGET', KEYS[1], 'gen') or '')}
for i, field in ipairs(ARGV) do found[i + 1] = redis.call('HGET', KEYS[2], field) end
return found
