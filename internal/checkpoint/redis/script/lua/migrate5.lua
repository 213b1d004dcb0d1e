#!lua
-- Brings a thread from format 5 to format 6, whose heads and runs have fields for runs that begin later. Records without
-- them are records of format 6: nothing is changed.
--
-- KEYS   1 head  2 interrupts  3 records
-- ARGV   1 '1' = change nothing, only look
-- Returns how many fields were changed, and the end of the lease in microseconds when it has not ended, or ''
local s = redis.call('HGET', KEYS[1], 'n')
s = s and cmsgpack.unpack(s)
local clock = redis.call('TIME')
local lease = s and s[8] > clock[1] * 1000000 + clock[2] and string.format('%.0f', s[8]) or ''
return {0, lease}
