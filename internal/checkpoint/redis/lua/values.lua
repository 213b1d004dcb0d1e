#!lua flags=no-writes
-- Reads fields of a thread's values.
--
-- KEYS   1 head  2 values
-- ARGV   the fields
-- Returns the generation, then the value of each field or nil. What is written under one generation never
--         changes, so reads of the same generation belong together.
local s = redis.call('HGET', KEYS[1], 'n')
s = s and cmsgpack.unpack(s)
local found = {s and s[11] .. '/' .. string.format('%.0f', s[6]) or '/'}
for i, field in ipairs(ARGV) do found[i + 1] = redis.call('HGET', KEYS[2], field) end
return found
