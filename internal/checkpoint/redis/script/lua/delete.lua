#!lua flags=allow-oom
-- Removes a thread and all that belongs to it, also when Redis is out of memory.
--
-- KEYS   as in apply.lua, all of them
-- ARGV   1 expected revision  2 expected log, '' = any  3 op  4 origin of the message  5 thread
--        6 the mark that the server knows
-- Returns as apply.lua does
local call = redis.call
local store = call('GET', KEYS[7])
if store ~= ARGV[6] then return {'STORE', store} end
local s = call('HGET', KEYS[1], 'n')
s = s and cmsgpack.unpack(s) or {0, [8] = 0}
local function text(n) return string.format('%.0f', n) end
if s[1] > 0 and ARGV[3] ~= '' and ARGV[3] == s[12] then
  return {'DONE', text(s[1]), s[8] > 0 and text(s[8]) or '', text(s[7])}
end
if s[1] == 0 or s[1] ~= tonumber(ARGV[1]) or (ARGV[2] ~= '' and ARGV[2] ~= s[11]) then return {'CONFLICT'} end
local questions = call('HGETALL', KEYS[10])
for i = 1, #questions, 2 do
  if string.sub(questions[i], 1, 1) == 'r' then
    local record = questions[i + 1]
    local created, size, first = string.match(record, '^%d+ %d+ (%x+):?(%d*) ()')
    created = created or ''
    local rest = ARGV[5] .. '\0' .. string.sub(questions[i], 2) .. '\0' .. string.format('%08x', #ARGV[5])
    for k = 13, 15 do call('ZREM', KEYS[k], created .. rest) end
    if size and size ~= '' then
      local due, place = nil, first
      while place < first + size do
        local n, at = string.match(record, '^(%d+):()', place)
        local part = string.sub(record, at, at + n - 1)
        place = at + n
        if not due then
          due = part
          if due ~= '' then call('ZREM', KEYS[16], 'd\0' .. due .. rest) end
        else
          call('ZREM', KEYS[16], 'c' .. part .. '\0' .. created .. rest)
          if due ~= '' then call('ZREM', KEYS[16], 'd' .. part .. '\0' .. due .. rest) end
        end
      end
    end
  end
end
local tags = s[15] or ''
if tags ~= '' then
  local place = '\0' .. string.sub(tags, 1, 16) .. ARGV[5] .. '\0\0' .. string.format('%08x', #ARGV[5])
  call('ZREM', KEYS[8], 's' .. s[16] .. place)
  local at = 17
  while at <= #tags do
    local n, first = string.match(tags, '^(%d+):()', at)
    at = first + n
    call('ZREM', KEYS[8], string.sub(tags, first, at - 1) .. place)
  end
end
call('ZREM', KEYS[5], s[13])
if KEYS[18] and call('EXISTS', KEYS[5]) == 0 then call('ZREM', KEYS[18], string.match(ARGV[5], '^[^@]*')) end
if s[14] ~= '' then call('ZREM', KEYS[6], s[14]) end
call('UNLINK', unpack(KEYS, 1, 4))
call('UNLINK', unpack(KEYS, 9, 12))
redis.pcall('SPUBLISH', KEYS[1], ARGV[4] .. 'x0:')
local clock = call('TIME')
return {'OK', text(s[1] + 1), '', text(clock[1] * 1000000 + clock[2])}
