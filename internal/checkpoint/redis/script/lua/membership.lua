#!lua
-- Writes the entry of a server, and returns those of the others that have changed.
--
-- KEYS   1 membership      hash: server to "end entry": end in microseconds, by this server's clock
--        2 format
--        3 changes         sorted set: server by the number of its last change, also of servers that are gone
--        4 ends            sorted set: server by the end of its entry in microseconds
--        5 numbers         hash: last, the number of the last change; lost, that of the newest change that is no longer known
-- ARGV   1 server  2 time to live in microseconds  3 its entry, '-' = remove it
--        4 epoch of the store that the server knows: in another one nothing is written
--        5 number of the last change that the server knows, '' = it wants all entries
-- Returns 1 when the entry has changed, or 0; the number of the last change, '' = none; 1 when the entries are
--         all, or 0 when they are those that have changed; then name and entry of each server, false = it is gone
--
-- Expired entries are removed, and so are those that expire too late to be true: the clock was set back since.
-- A graphd that knows the hash alone writes no changes. While it is a member, all entries are returned.
if redis.call('HGET', KEYS[2], 'epoch') ~= ARGV[4] then return {0, '', 1} end
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local holds = tonumber(ARGV[2])
local latest = now + 100 * holds
local function text(n) return string.format('%.0f', n) end
local function note(server)
  redis.call('ZADD', KEYS[3], redis.call('HINCRBY', KEYS[5], 'last', 1), server)
end
local function parse(value)
  local ends, what = string.match(value or '', '^(%d+) (.*)$')
  ends = tonumber(ends or '0')
  return ends > now and ends <= latest and ends, what
end
local function expire(from, to)
  for _, server in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], from, to)) do
    local ends = parse(redis.call('HGET', KEYS[1], server))
    if ends then -- a graphd that knows the hash alone has renewed it
      redis.call('ZADD', KEYS[4], text(ends), server)
    else
      redis.call('ZREM', KEYS[4], server)
      redis.call('HDEL', KEYS[1], server)
      note(server)
    end
  end
end
expire('-inf', text(now))
expire('(' .. text(latest), '+inf')

local changed = 0
local before = redis.call('HGET', KEYS[1], ARGV[1])
if ARGV[3] == '-' then
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('ZREM', KEYS[4], ARGV[1])
  if before then changed = 1 end
else
  local ends = text(now + holds)
  redis.call('HSET', KEYS[1], ARGV[1], ends .. ' ' .. ARGV[3])
  redis.call('ZADD', KEYS[4], ends, ARGV[1])
  local _, what = parse(before)
  if what ~= ARGV[3] then changed = 1 end
end
if changed == 1 then note(ARGV[1]) end

-- Changes of servers that are gone are forgotten, oldest first, when there are many.
if redis.call('ZCARD', KEYS[3]) > redis.call('HLEN', KEYS[1]) + 1024 then
  local oldest = redis.call('ZRANGE', KEYS[3], 0, 63, 'WITHSCORES')
  for i = 1, #oldest, 2 do
    if not redis.call('HGET', KEYS[1], oldest[i]) then
      redis.call('ZREM', KEYS[3], oldest[i])
      redis.call('HSET', KEYS[5], 'lost', oldest[i + 1])
    end
  end
end

local last = tonumber(redis.call('HGET', KEYS[5], 'last') or '0')
local lost = tonumber(redis.call('HGET', KEYS[5], 'lost') or '0')
local known = tonumber(ARGV[5])
local found = {changed, text(last), 0}
if known and known >= lost and known <= last and redis.call('HLEN', KEYS[1]) == redis.call('ZCARD', KEYS[4]) then
  if known == last then return found end
  for _, server in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. text(known), '+inf')) do
    if server ~= ARGV[1] then
      local ends, what = parse(redis.call('HGET', KEYS[1], server))
      found[#found + 1] = server
      found[#found + 1] = ends and what or false
    end
  end
  return found
end
found[3] = 1
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local ends, what = parse(all[i + 1])
  if not ends then
    redis.call('HDEL', KEYS[1], all[i])
  elseif all[i] ~= ARGV[1] then
    found[#found + 1] = all[i]
    found[#found + 1] = what
  end
end
return found
