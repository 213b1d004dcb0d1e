#!lua flags=no-writes
-- Reads events of a thread.
--
-- KEYS   1 head  2 log
-- ARGV   1 number after which to read  2 limit, 0 = all
-- Returns number of the first event that is kept, nil without a thread; then number of the first event
--         that follows, then the events; or LOST and how many events there are, which is not how many there must be
local h = redis.call('HMGET', KEYS[1], 'fe', 'le')
local first = tonumber(h[1] or '0')
if first == 0 then return {} end
local count = redis.call('LLEN', KEYS[2])
if count ~= tonumber(h[2]) - first + 1 then return {'LOST', string.format('%.0f', count)} end
local start, limit = tonumber(ARGV[1]) + 1, tonumber(ARGV[2])
local text = string.format('%.0f', first)
if start < first then return {text} end
local from, to = start - first, -1
if limit > 0 then to = from + limit - 1 end
return {text, string.format('%.0f', start), redis.call('LRANGE', KEYS[2], from, to)}
