#!lua flags=no-writes
-- Reads fields of a thread's values.
--
-- KEYS   1 head  2 values  3 records
-- ARGV   the fields
-- Returns the generation, then the value of each field or nil, then run and input of what they quote. What is written under one generation never
--         changes, so reads of the same generation belong together.
local s = redis.call('HGET', KEYS[1], 'n')
s = s and cmsgpack.unpack(s)
local found = {s and s[11] .. '/' .. string.format('%.0f', s[6]) or '/'}
local quoted = {}
for i, field in ipairs(ARGV) do
  local value = redis.call('HGET', KEYS[2], field)
  if value and string.byte(value) == 6 then
    local rest = redis.call('HGET', KEYS[2], 'j' .. field)
    value = rest and string.sub(value, 2) .. rest
  end
  found[i + 1] = value
  local run = value and string.match(value, '^\5%d+:%d+:(.*)$')
  if run and not quoted[run] then
    quoted[run] = true
    quoted[#quoted + 1] = run
  end
end
for _, run in ipairs(quoted) do
  found[#found + 1] = run
  found[#found + 1] = redis.call('HGET', KEYS[3], 'i' .. run)
end
return found
