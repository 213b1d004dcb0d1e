#!lua flags=no-writes
-- Reads events of a thread.
--
-- KEYS   1 head  2 log
-- ARGV   1 number after which to read  2 limit, 0 = all  3 bytes of elements after which there are enough, 0 = never
-- Returns number of the first event that is kept, nil without a thread; then number of the first event
--         that follows, of the last one there is, and the elements of the log with those that were asked for,
--         and with some before and behind them; or LOST and how many elements there are, which is not how
--         many there must be
local call = redis.call
local s = call('HGET', KEYS[1], 'n')
if not s then return {} end
s = cmsgpack.unpack(s)
local fe, le, elements = s[3], s[4], s[5]
local function text(n) return string.format('%.0f', n) end
local count = call('LLEN', KEYS[2])
if count ~= elements then return {'LOST', text(count)} end
local start, limit = ARGV[1] + 1, tonumber(ARGV[2])
if start < fe then return {text(fe)} end
if start > le then return {text(fe), text(start), text(le), {}} end

-- find looks for the element with an event.
local function find(seq, low)
  local high = elements - 1
  while low < high do
    local middle = math.ceil((low + high) / 2)
    local first = tonumber(string.match(call('LINDEX', KEYS[2], middle), '^%d+') or '0')
    if first <= seq then low = middle else high = middle - 1 end
  end
  return low
end
local from = find(start, 0)
local to = elements - 1
if limit > 0 and start + limit <= le then to = find(start + limit - 1, from) end
local most = tonumber(ARGV[3])
if most == 0 then return {text(fe), text(start), text(le), call('LRANGE', KEYS[2], from, to)} end

-- Some elements at a time: as many as will have the bytes that are left, if they
-- are like those before.
local found, bytes, step = {}, 0, 4
while from <= to and bytes < most do
  for _, element in ipairs(call('LRANGE', KEYS[2], from, math.min(to, from + step - 1))) do
    found[#found + 1] = element
    bytes = bytes + #element
  end
  from = from + step
  step = math.max(1, math.floor((most - bytes) * #found / math.max(bytes, 1)))
end
return {text(fe), text(start), text(le), found}
