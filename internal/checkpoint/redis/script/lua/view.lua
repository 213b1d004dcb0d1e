#!lua flags=no-writes
-- Reads what is needed to continue a thread.
--
-- KEYS   1 head  2 values  3 order  4 log  5 progress  6 interrupts  7 records  8 runs  9 store
-- ARGV   1 how the newest checkpoint of the root begins in order  2 id of a request, ''
--        3 how many interrupts, or records of progress, are too many  4 bytes of progress that are too many
-- Returns present in microseconds, revision, end of the lease, record; the last three are nil without a
--         thread; how many of the other keys there were and those that are not there, or nil; then the
--         generation, without a thread the store that the partition belongs to, nil = none, and nothing more; id and manifest of the newest checkpoint of the root; id, record and input of the
--         newest run; fields and records of the progress after the checkpoint, or nil; fields and values of
--         the interrupts, or nil; the request
local call = redis.call
local clock = call('TIME')
local h = call('HMGET', KEYS[1], 'n', 'head')
local s = h[1] and cmsgpack.unpack(h[1]) or {0, [9] = 0, [10] = 0}
local function text(n) return string.format('%.0f', n) end
local out = {text(clock[1] * 1000000 + clock[2]), false, false, false}
if h[1] then out[2], out[3], out[4] = text(s[1]), s[8] > 0 and text(s[8]) or '', h[2] end
if call('EXISTS', unpack(KEYS, 2, 8)) ~= s[9] + s[10] then
  out[5], out[6] = text(s[9] + s[10]), {}
  for k = 1, 8 do
    if call('EXISTS', KEYS[k]) == 0 then table.insert(out[6], KEYS[k]) end
  end
end
if not h[1] then
  out[5], out[6], out[7] = out[5] or false, out[6] or false, call('GET', KEYS[9])
  return out
end
if out[5] then return out end
out[5], out[6] = false, false
out[7] = s[11] .. '/' .. text(s[6])
local id = false
for _, member in ipairs(call('ZREVRANGE', KEYS[3], 0, 31)) do
  if string.sub(member, 1, #ARGV[1]) == ARGV[1] then
    id = string.sub(member, #ARGV[1] + 1)
    break
  end
end
out[8], out[9] = id, id and call('HGET', KEYS[2], 'c' .. id)
local run = call('ZREVRANGE', KEYS[8], 0, 0)[1]
local r = {}
if run then r = call('HMGET', KEYS[7], 'r' .. run, 'i' .. run) end
out[10], out[11], out[12] = run or false, r[1] or false, r[2] or false
local many = tonumber(ARGV[3])
out[13] = false
local progress = id and call('HLEN', KEYS[5])
if id and progress <= many then
  local prefix, done, left = #id .. ':' .. id, {}, tonumber(ARGV[4])
  for _, field in ipairs(progress > 0 and call('HKEYS', KEYS[5]) or {}) do
    if left >= 0 and string.sub(field, 1, #prefix) == prefix then
      left = left - call('HSTRLEN', KEYS[5], field)
      if left >= 0 then
        done[#done + 1] = string.sub(field, #prefix + 1)
        done[#done + 1] = call('HGET', KEYS[5], field)
      end
    end
  end
  if left >= 0 then out[13] = done end
end
out[14] = false
if call('HLEN', KEYS[6]) <= 2 * many then out[14] = call('HGETALL', KEYS[6]) end
out[15] = ARGV[2] ~= '' and call('HGET', KEYS[7], 'q' .. ARGV[2]) or false
return out
