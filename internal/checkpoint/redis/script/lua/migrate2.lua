#!lua
-- Brings a thread from format 2 to format 3: the numbers of interrupts and runs stand with their records. One
-- build of format 2 kept them apart, in fields n<id>: "change revision member" of an interrupt, the revision of
-- a run.
--
-- KEYS   1 head  2 interrupts  3 records
-- ARGV   1 '1' = change nothing, only look
-- Returns how many fields there were apart, and the end of the lease in microseconds when it has not ended, or ''
local call = redis.call
local apart = 0
local look = ARGV[1] == '1'

for _, field in ipairs(call('HKEYS', KEYS[2])) do
  if string.sub(field, 1, 1) == 'n' then
    apart = apart + 1
    local record = 'r' .. string.sub(field, 2)
    local change, revision, member = string.match(call('HGET', KEYS[2], field), '^(%d+) (%d+) (.*)$')
    local text = call('HGET', KEYS[2], record)
    if not look then
      if member and text and not string.match(text, '^%d+ %d+ %x+ ') then
        call('HSET', KEYS[2], record, change .. ' ' .. revision .. ' ' .. string.sub(member, 1, 16) .. ' ' .. text)
      end
      call('HDEL', KEYS[2], field)
    end
  end
end

for _, field in ipairs(call('HKEYS', KEYS[3])) do
  if string.sub(field, 1, 1) == 'n' then
    apart = apart + 1
    local record = 'r' .. string.sub(field, 2)
    local text = call('HGET', KEYS[3], record)
    if not look then
      if text and not string.match(text, '^%d+ ') then
        call('HSET', KEYS[3], record, call('HGET', KEYS[3], field) .. ' ' .. text)
      end
      call('HDEL', KEYS[3], field)
    end
  end
end

local s = call('HGET', KEYS[1], 'n')
s = s and cmsgpack.unpack(s)
local clock = call('TIME')
local lease = s and s[8] > clock[1] * 1000000 + clock[2] and string.format('%.0f', s[8]) or ''
return {apart, lease}
