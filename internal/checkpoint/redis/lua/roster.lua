#!lua
-- Says what the workers of a server take, and learns what those of the others take.
--
-- KEYS   1 roster      hash: server to "end what": end in microseconds, of what was said, by this server's clock
--        2 format
-- ARGV   1 server  2 how long it holds, in microseconds  3 what its workers take, '' = it has none
--        4 epoch of the store that is meant: in another one nothing is said
-- Returns 1 when that is something else than before, or 0, then per other server its name and what it said
--
-- What has ended is forgotten, and so is what ends too late to be true: the clock was set back since.
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
