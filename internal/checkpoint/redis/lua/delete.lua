#!lua flags=allow-oom
-- Removes a thread and all that belongs to it, also when Redis is out of memory.
--
-- KEYS   as in apply.lua, all of them
-- ARGV   1 expected revision  2 expected log, '' = any  3 op  4 who tells of it
-- Returns as apply.lua does
local call = redis.call
local h = call('HMGET', KEYS[1], 'rev', 'log', 'op', 'at', 'lx', 'tm', 'dm')
if h[1] and ARGV[3] ~= '' and ARGV[3] == h[3] then return {'DONE', h[1], h[5], h[4]} end
if not h[1] or h[1] ~= ARGV[1] or (ARGV[2] ~= '' and ARGV[2] ~= h[2]) then return {'CONFLICT'} end
local questions = call('HGETALL', KEYS[8])
for i = 1, #questions, 2 do
  if string.sub(questions[i], 1, 1) == 'n' then
    local member = string.match(questions[i + 1], '^%d+ %d+ (.*)$')
    for k = 11, 13 do call('ZREM', KEYS[k], member) end
  end
end
if h[6] then call('ZREM', KEYS[5], h[6]) end
if h[7] then call('ZREM', KEYS[6], h[7]) end
call('UNLINK', unpack(KEYS, 1, 4))
call('UNLINK', unpack(KEYS, 7, 10))
redis.pcall('SPUBLISH', KEYS[1], ARGV[4] .. 'x0:')
local clock = call('TIME')
return {'OK', string.format('%.0f', h[1] + 1), '', string.format('%.0f', clock[1] * 1000000 + clock[2])}
