#!lua
-- Makes one change of a thread, or none of it.
--
-- KEYS   1 head        hash: rev log op at lx seq fe le gen tm dm nv nr head; nv is how many of 2 to 4 there
--                      are, nr how many of 7 to 10
--        2 values      hash: c<id> manifest, v<seq>:<channel> value,
--                      i<segment>:<index>:<channel> element, w<id> the names of what <id> wrote
--        3 order       sorted set: checkpoints by number
--        4 log         list: events from number fe on
--        5 threads  6 due    sorted sets of the partition
--        then, unless the change is nothing but checkpoints and events:
--        7 progress    hash: <len>:<checkpoint>t<task>, <len>:<checkpoint>m<memo>
--        8 questions   hash: r<id> record, n<id> "change revision member", a<checkpoint> ids
--        9 records     hash: r<run> record, n<run> revision, q<request> record
--       10 runs        sorted set: runs by order
--       11 inbox  12 open  13 closed    sorted sets of the partition
--       14 count       number of the last change of a question in the partition
--
-- ARGV   1 thread  2 expected revision, 0 = none  3 expected log, '' = any  4 op
--        5 new revision  6 new log  7 '1' = has an owner  8 lease in microseconds, 0 = keep
--        9 head record  10 last checkpoint number  11 last event  12 last event before this change
--       13 number of the first new checkpoint, ''  14 drop checkpoints after, ''
--       15 first event to keep, 0 = all  16 member in threads  17 due in nanoseconds, ''
--       18 who tells of the change  19 what is told before it (see news.go)
--       then lists, each after its length:
--         checkpoints: number, member, list of (field, value) of values
--         events: record
--       and with all keys:
--         prefixes of progress that is used up
--         checkpoints that are outdated: member
--         fields of values that go with them
--         tasks: field, record
--         memos: field, record
--         questions: id, checkpoint, member, '1' = open, record
--         runs: id, order, record
--         requests: id, record
--
-- Returns OK | DONE, revision, end of the lease or '', present (both in microseconds): applied now,
--         or before under the same op; of OK also how many connections listen to the thread, and the
--         revisions of the runs
--         CONFLICT: not at that revision, or of another log
--         GAP, last event, last checkpoint number: the change does not follow them
--         LOST, how many of the keys that were looked for there were, those that are not there: somebody
--         took one away
--
-- Everything is checked before anything is written.
local A = ARGV
local head, values, order, log, threads, due = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local progress, questions, records, runs = KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local inbox, open, closed, count = KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local call = redis.call

local function text(n) return string.format('%.0f', n) end

local h = call('HMGET', head, 'rev', 'log', 'op', 'at', 'lx', 'seq', 'fe', 'le', 'gen', 'tm', 'dm', 'nv', 'nr')
local rev = h[1] or '0'
if rev ~= '0' and A[4] ~= '' and A[4] == h[3] then return {'DONE', rev, h[5], h[4]} end
if rev ~= A[2] or (rev ~= '0' and A[3] ~= '' and A[3] ~= h[2]) then return {'CONFLICT'} end
local last = tonumber(h[6] or '0')
if A[14] ~= '' then last = math.min(last, tonumber(A[14])) end
if A[12] ~= (h[8] or '0') or (A[13] ~= '' and tonumber(A[13]) <= last) then
  return {'GAP', h[8] or '0', h[6] or '0'}
end

local nv, nr = call('EXISTS', values, order, log), h[13]
local had = tonumber(h[12] or nv)
if rev == '0' then had = 0 end
if progress then
  local others = call('EXISTS', progress, questions, records, runs)
  if rev == '0' then nr = 0 end
  nr = tonumber(nr or others)
  if nv + others ~= had + nr or nv ~= had then
    local missing = {}
    for k = 1, 10 do
      if k ~= 5 and k ~= 6 and call('EXISTS', KEYS[k]) == 0 then missing[#missing + 1] = KEYS[k] end
    end
    return {'LOST', text(had + nr), missing}
  end
elseif nv ~= had then
  local missing = {}
  for k = 1, 4 do
    if call('EXISTS', KEYS[k]) == 0 then missing[#missing + 1] = KEYS[k] end
  end
  return {'LOST', text(had), missing}
end

local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- A list of the arguments begins with its length, at place at. size is how many arguments an element has.
-- Loops are written out, and lists handed on as they are: all others wait while this runs.
local at = 20
local function list(size)
  local from = at + 1
  at = from + A[from - 1] * size
  return from, at - 1
end

-- write hands arguments on to one call, or to several when they are many: the stack of Lua is not endless.
local function write(command, key, from, to)
  while to - from >= 4000 do
    call(command, key, unpack(A, from, from + 3999))
    from = from + 4000
  end
  if to >= from then call(command, key, unpack(A, from, to)) end
end

-- Checkpoints and events come first among the arguments; what is taken away is so before they are written.
local from, to
local gen = h[9] or '0'
local fresh = at
at = at + 1
for _ = 1, A[fresh] do
  at = at + 2
  list(2)
end
local newFrom, newTo = list(1)
if progress then
  local gone = {}
  from, to = list(1)
  for i = from, to do gone[#gone + 1] = A[i] end
  if A[14] ~= '' then
    local from = '(' .. A[14]
    for _, member in ipairs(call('ZRANGEBYSCORE', order, from, '+inf')) do
      local path = string.match(member, '^%d+')
      local rest = string.sub(member, #path + 2 + path)
      local space = string.match(rest, '^%d+')
      local id = string.sub(rest, #space + 2 + space)
      local wrote = call('HGET', values, 'w' .. id)
      if wrote then
        for _, field in ipairs(cmsgpack.unpack(wrote)) do call('HDEL', values, field) end
      end
      call('HDEL', values, 'c' .. id, 'w' .. id)
      gone[#gone + 1] = #id .. ':' .. id
    end
    call('ZREMRANGEBYSCORE', order, from, '+inf')
    gen = text(gen + 1)
  end
  from, to = list(1)
  if to >= from then gen = text(gen + 1) end
  write('ZREM', order, from, to)
  from, to = list(1)
  write('HDEL', values, from, to)
  if #gone > 0 then
    for _, field in ipairs(call('HKEYS', progress)) do
      for _, prefix in ipairs(gone) do
        if string.sub(field, 1, #prefix) == prefix then call('HDEL', progress, field) end
      end
    end
  end
end

local counted = {}
local after = at
at = fresh + 1
for _ = 1, A[fresh] do
  call('ZADD', order, A[at], A[at + 1])
  at = at + 2
  from, to = list(2)
  write('HSET', values, from, to)
end
write('RPUSH', log, newFrom, newTo)
at = after
if progress then
  from, to = list(2)
  write('HSET', progress, from, to)
  from, to = list(2)
  for i = from, to, 2 do call('HSETNX', progress, A[i], A[i + 1]) end

  -- The number of a change grows in the partition whatever the clock does; the clock only makes numbers of
  -- several partitions come close to the order in which things happened.
  local change
  from, to = list(5)
  for i = from, to, 5 do
    local id, member = A[i], A[i + 2]
    change = math.max((change or tonumber(call('GET', count) or '0')) + 1, now)
    local revision = 1
    local old = call('HGET', questions, 'n' .. id)
    if old then
      local _, r, was = string.match(old, '^(%d+) (%d+) (.*)$')
      revision = r + 1
      if was ~= member then
        call('ZREM', inbox, was)
        call('ZREM', open, was)
        call('ZREM', closed, was)
      end
    else
      local asked = call('HGET', questions, 'a' .. A[i + 1])
      local ids = asked and cmsgpack.unpack(asked) or {}
      ids[#ids + 1] = id
      call('HSET', questions, 'a' .. A[i + 1], cmsgpack.pack(ids))
    end
    call('HSET', questions, 'r' .. id, A[i + 4],
      'n' .. id, text(change) .. ' ' .. text(revision) .. ' ' .. member)
    call('ZADD', inbox, change, member)
    local to, from = open, closed
    if A[i + 3] ~= '1' then to, from = closed, open end
    call('ZREM', from, member)
    call('ZADD', to, 0, member)
  end
  if change then call('SET', count, text(change)) end

  from, to = list(3)
  for i = from, to, 3 do
    call('HSET', records, 'r' .. A[i], A[i + 2])
    counted[#counted + 1] = call('HINCRBY', records, 'n' .. A[i], 1)
    call('ZADD', runs, A[i + 1], A[i])
  end
  from, to = list(2)
  for i = from, to, 2 do call('HSET', records, 'q' .. A[i], A[i + 1]) end
  nr = call('EXISTS', progress, questions, records, runs)
end
local fe = h[7] or '1'
if A[15] ~= '0' and tonumber(A[15]) > tonumber(fe) then
  call('LTRIM', log, A[15] - fe, -1)
  fe = A[15]
end
if progress or nv < 3 or fe ~= h[7] then nv = call('EXISTS', values, order, log) end

-- The end of a lease is put off by steps of a power of two, a sixteenth of it at most, so that not every
-- change moves the thread in the list of what is due.
local lx = h[5] or ''
if A[8] ~= '0' then
  local _, power = math.frexp(A[8] / 16)
  local step = math.max(1, 2 ^ (power - 1))
  lx = text(math.ceil((now + A[8]) / step) * step)
end
if A[7] ~= '1' then lx = '' end
local wake = A[17]
if lx ~= '' then
  local ends = lx .. '000'
  if wake == '' or ends < wake then wake = ends end
end
local tm, dm = A[16], wake
if dm ~= '' then dm = dm .. A[1] end
if h[10] ~= tm then
  if h[10] then call('ZREM', threads, h[10]) end
  call('ZADD', threads, 0, tm)
end
if (h[11] or '') ~= dm then
  if h[11] and h[11] ~= '' then call('ZREM', due, h[11]) end
  if dm ~= '' then call('ZADD', due, 0, dm) end
end
local present = text(now)
call('HSET', head, 'rev', A[5], 'log', A[6], 'op', A[4], 'at', present, 'lx', lx, 'seq', A[10],
  'fe', fe, 'le', A[11], 'gen', gen, 'tm', tm, 'dm', dm, 'nv', nv, 'nr', nr or 0, 'head', A[9])

-- Whoever listens is told. Nothing here may fail: the change is made.
local n = redis.pcall('PUBSUB', 'SHARDNUMSUB', head)
local heard = n[2] or 0
if heard > 0 and (newTo >= newFrom or A[19] ~= '') then
  local said = {A[18], A[19]}
  local size = #A[19]
  for k = newFrom, newTo do
    said[#said + 1] = 'e' .. #A[k] .. ':'
    said[#said + 1] = A[k]
    size = size + #said[#said - 1] + #A[k]
  end
  if size > 262144 then said = {A[18], 'l0:'} end
  redis.pcall('SPUBLISH', head, table.concat(said))
end
return {'OK', A[5], lx, present, heard, counted}
