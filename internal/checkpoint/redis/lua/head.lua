#!lua flags=no-writes
-- Reads the head of a thread together with the present.
--
-- KEYS   1 head; then values, order, progress, questions, records, runs, log, to look whether all that
--        the thread had are still there
-- Returns present in microseconds, revision, end of the lease, record; the last three are nil without a thread.
--         When keys are missing: then how many there were, and those that are not there
local clock = redis.call('TIME')
local h = redis.call('HMGET', KEYS[1], 'rev', 'lx', 'head', 'nv', 'nr')
local out = {string.format('%.0f', clock[1] * 1000000 + clock[2]), h[1], h[2], h[3]}
if not KEYS[2] then return out end
local there, had = redis.call('EXISTS', unpack(KEYS, 2)), h[4] and string.format('%.0f', h[4] + h[5])
if not h[1] then had = '0' end
if had and there ~= tonumber(had) then
  out[5], out[6] = had, {}
  for _, key in ipairs(KEYS) do
    if redis.call('EXISTS', key) == 0 then table.insert(out[6], key) end
  end
end
return out
