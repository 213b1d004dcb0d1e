#!lua flags=no-writes
-- Reads the progress after a checkpoint.
--
-- KEYS   1 progress  2 interrupts
-- ARGV   1 checkpoint  2 prefix of its progress  3 bytes of records beyond which none is returned, 0 = any number are
--        4 about how many bytes of a record are its seal
-- Returns fields and records of progress as one list; then id and record of each interrupt; or, when they have too many
--         bytes, two empty lists and how many bytes they have
local prefix, most, bytes = ARGV[2], tonumber(ARGV[3]), 0
local fields, ids = {}, {}
local function count(key, field)
  if most > 0 then bytes = bytes + math.max(0, redis.call('HSTRLEN', key, field) - tonumber(ARGV[4])) end
end
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(field, 1, #prefix) == prefix then
    fields[#fields + 1] = field
    count(KEYS[1], field)
  end
end
local asked_by = redis.call('HGET', KEYS[2], 'a' .. ARGV[1])
if asked_by then
  ids = cmsgpack.unpack(asked_by)
  for _, id in ipairs(ids) do count(KEYS[2], 'r' .. id) end
end
if bytes > most then return {{}, {}, string.format('%.0f', bytes)} end
local done, asked = {}, {}
for _, field in ipairs(fields) do
  done[#done + 1] = string.sub(field, #prefix + 1)
  done[#done + 1] = redis.call('HGET', KEYS[1], field)
end
for _, id in ipairs(ids) do
  asked[#asked + 1] = id
  asked[#asked + 1] = redis.call('HGET', KEYS[2], 'r' .. id)
end
return {done, asked}
