#!lua flags=no-writes
-- Reads the interrupts of a thread, or where they stand when they are large.
--
-- KEYS   1 interrupts  2 store
-- ARGV   1 bytes that are large
-- Returns fields and values, or nil; then id, number of the last change, place in the order of creation and
--         length of each interrupt; then the store that the partition belongs to
local call = redis.call
local fields, bytes, most = call('HKEYS', KEYS[1]), 0, tonumber(ARGV[1])
for _, field in ipairs(fields) do bytes = bytes + call('HSTRLEN', KEYS[1], field) end
if bytes < most then return {call('HGETALL', KEYS[1]), {}, call('GET', KEYS[2])} end
local found = {}
for _, field in ipairs(fields) do
  if string.sub(field, 1, 1) == 'r' then
    local record = call('HGET', KEYS[1], field)
    local change, created = string.match(record, '^(%d+) %d+ (%x+)[: ]')
    for _, v in ipairs({string.sub(field, 2), change or '', created or '', tostring(#record)}) do found[#found + 1] = v end
  end
end
return {false, found}
