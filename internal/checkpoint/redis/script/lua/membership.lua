#!lua
-- Writes the entry of a server, and returns those of the others.
--
-- KEYS   1 membership      hash: server to "end entry": end in microseconds, by this server's clock
--        2 format
-- ARGV   1 server  2 time to live in microseconds  3 its entry, '' = remove it
--        4 epoch of the store that the server knows: in another one nothing is written
-- Returns 1 when the entry has changed, or 0, then name and entry of each other server
--
-- Expired entries are removed, and so are those that expire too late to be true: the clock was set back since.
if redis.call('HGET', KEYS[2], 'epoch') ~= ARGV[4] then return {0} end
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local holds = tonumber(ARGV[2])
local all = redis.call('HGETALL', KEYS[1])
local found, before = {0}, ''
for i = 1, #all, 2 do
  local ends, what = string.match(all[i + 1], '^(%d+) (.*)$')
  ends = tonumber(ends or '0')
  if ends <= now or ends > now + 100 * holds then
    redis.call('HDEL', KEYS[1], all[i])
  elseif all[i] == ARGV[1] then
    before = what
  else
    found[#found + 1] = all[i]
    found[#found + 1] = what
  end
end
if before ~= ARGV[3] then found[1] = 1 end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f ', now + holds) .. ARGV[3])
end
return found
