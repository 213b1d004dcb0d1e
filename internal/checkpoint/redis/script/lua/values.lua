#!lua flags=no-writes
-- Reads fields of a thread's values.
--
-- KEYS   1 head  2 values  3 records
-- ARGV   1 bytes after which the rest is left for later, 0 = never; below 0, what comes before the field
--        with which it would be more than so many is all there is  then the fields
-- Returns the generation, how many fields were read, the value of each or nil, then run and input of the inputs that they refer to. What is written under one
--         generation never changes, so reads of the same generation belong together.
local s = redis.call('HGET', KEYS[1], 'n')
s = s and cmsgpack.unpack(s)
local found = {s and s[11] .. '/' .. string.format('%.0f', s[6]) or '/', '0'}
local left = tonumber(ARGV[1])
local strict = left < 0
if left == 0 then left = math.huge end
if strict then left = -left end
local quoted, count = {}, 0
for i = 2, #ARGV do
  local field = ARGV[i]
  local value = redis.call('HGET', KEYS[2], field)
  if value and string.byte(value) == 6 then
    local rest = redis.call('HGET', KEYS[2], 'j' .. field)
    value = rest and string.sub(value, 2) .. rest
  end
  local run = value and string.match(value, '^\5%d+:%d+:(.*)$')
  local new = run and not quoted[run]
  local size = (value and #value or 0) + (new and redis.call('HSTRLEN', KEYS[3], 'i' .. run) or 0)
  if strict and size > left then break end
  count = i - 1
  found[count + 2] = value
  if new then
    quoted[run] = true
    quoted[#quoted + 1] = run
  end
  left = left - size
  if left <= 0 and not strict then break end
end
found[2] = tostring(count)
for _, run in ipairs(quoted) do
  found[#found + 1] = run
  found[#found + 1] = redis.call('HGET', KEYS[3], 'i' .. run)
end
return found
