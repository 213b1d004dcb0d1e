#!lua flags=no-writes
-- Reads the head of a thread together with the present.
--
-- KEYS   1 head; then store, values, order, progress, interrupts, records, runs, log, to look whether all that
--        the thread had are still there
-- Returns present in microseconds, revision, end of the lease, record; the last three are nil without a thread.
--         Then, when keys are missing, how many there were, and those that are not there; and without a thread
--         the store that the partition belongs to, nil = none
local clock = redis.call('TIME')
local h = redis.call('HMGET', KEYS[1], 'n', 'head')
local s = h[1] and cmsgpack.unpack(h[1]) or {0, [9] = 0, [10] = 0}
local function text(n) return string.format('%.0f', n) end
local out = {text(clock[1] * 1000000 + clock[2]), false, false, false, false, false, false}
if h[1] then out[2], out[3], out[4] = text(s[1]), s[8] > 0 and text(s[8]) or '', h[2] end
if not KEYS[2] then return out end
if redis.call('EXISTS', unpack(KEYS, 3)) ~= s[9] + s[10] then
  out[5], out[6] = text(s[9] + s[10]), {}
  for _, key in ipairs(KEYS) do
    if redis.call('EXISTS', key) == 0 then table.insert(out[6], key) end
  end
end
if not h[1] then out[7] = redis.call('GET', KEYS[2]) end
return out
