#!lua
-- Makes one change of a thread, or none of it.
--
-- KEYS   1 head        hash: head record, n where the thread stands: MessagePack of an array
--                          1 revision  2 last checkpoint number  3 first event  4 last event
--                          5 elements of the log  6 generation of values  7 when it was changed last
--                          8 end of the lease, 0 = none  9 how many of the keys 2 to 4 there are
--                          10 how many of 9 to 12  11 log id  12 op  13 member in threads
--                          14 member in due, '' = none; times in microseconds
--                          15 tags (see layout.EncodeThreadTags)  16 state
--        2 values      hash: c<id> manifest, v<seq>:<channel> value, i<segment>:<index>:<channel> element;
--                      j<field> the rest of one that begins with byte 6 (see layout/split_value.go); one that begins with
--                      byte 5 is quoted from an input (see layout/input_ref.go)
--        3 order       sorted set: checkpoints by number
--        4 log         list: number of the first of some events, ':', record of all of them
--        5 threads  6 due    sorted sets of the partition; 5, 8 and 13 to 16 are those of the tenant
--        7 store       which store the partition belongs to
--        8 threadtags  sorted set of the partition: tags of threads, as layout/tag.go says
--        then, unless the change is nothing but checkpoints and events:
--        9 progress    hash: <len>:<checkpoint>t<task>, <len>:<checkpoint>m<memo>
--       10 interrupts  hash: r<id> "change revision created record", a<checkpoint> ids;
--                          of one with tags "change revision created:length tags record", without the last space
--       11 records     hash: r<run> "revision record", i<run> input, q<request> record
--       12 runs        sorted set: runs by order
--       13 inbox  14 open  15 closed  16 tags    sorted sets of the partition, tags as layout/tag.go says
--       17 count       number of the last change of an interrupt in the partition
--       18 tenants     sorted set of the partition; left out for the default tenant
--
-- ARGV   1 thread  2 expected revision, 0 = none  3 expected log, '' = any  4 op
--        5 new log  6 '1' = has an owner  7 lease in microseconds, 0 = keep
--        8 head record  9 last checkpoint number  10 last event  11 last event before this change
--       12 number of the first new checkpoint, ''  13 number of the last checkpoint that stays, '' = all
--       14 first event to keep, 0 = all  15 member in threads  16 due in nanoseconds, ''
--       17 publisher of the change  18 ephemeral events before it (see pubsub/message.go)
--       19 mark of the store that the caller expects (see setup/mark.go)  20 tags of the thread (see layout.EncodeThreadTags)
--       21 state of the thread
--       then lists, each after its length:
--         checkpoints: number, member
--         fields of values: field, value
--         elements of the log
--       and with all keys:
--         prefixes of progress that is used up
--         checkpoints that are taken away: member
--         fields of values that are
--         tasks: field, record
--         memos: field, record
--         interrupts: id, checkpoint, member, '1' = open, record, tags (see layout.EncodeTags)
--         runs: id, order, record, input, '' = it is in the record
--         requests: id, record
--
-- Returns OK | DONE, revision, end of the lease or '', present (both in microseconds): applied now,
--         or before under the same op; of OK also how many connections listen to the thread, and the
--         revisions of the runs
--         CONFLICT: not at that revision, or of another log
--         GAP, last event, last checkpoint number: the change does not follow them
--         LOST, how many of the keys that were looked for there were, those that are missing
--         STORE, the mark of the partition, nil = none: it is not the one that the server knows
--
-- Everything is checked before anything is written. The parts: check, drop, checkpoints and events, progress,
-- questions, runs, trim, lease, lists of the thread, notify.
local A = ARGV
local head, values, order, log, threads, due = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local progress, questions, records, runs = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local inbox, open, closed, tags, count = KEYS[13], KEYS[14], KEYS[15], KEYS[16], KEYS[17]
local call = redis.call

-- Check: the store, the revision, what the change follows, and that no key of the thread is missing.

local store = call('GET', KEYS[7])
if store ~= A[19] then return {'STORE', store} end

local function text(n) return string.format('%.0f', n) end
local function ends(n) return n > 0 and text(n) or '' end

local s = call('HGET', head, 'n')
s = s and cmsgpack.unpack(s) or {0, 0, 1, 0, 0, 0, 0, 0, 0, 0, '', '', false, '', '', ''}
local rev, le = s[1], s[4]
if rev > 0 and A[4] ~= '' and A[4] == s[12] then return {'DONE', text(rev), ends(s[8]), text(s[7])} end
if rev ~= tonumber(A[2]) or (rev > 0 and A[3] ~= '' and A[3] ~= s[11]) then return {'CONFLICT'} end
local last = s[2]
if A[13] ~= '' then last = math.min(last, A[13]) end
if tonumber(A[11]) ~= le or (A[12] ~= '' and tonumber(A[12]) <= last) then
  return {'GAP', text(le), text(s[2])}
end

local nv, nr = s[9], s[10]
local had, there
if progress then
  had, there = nv + nr, call('EXISTS', values, order, log, progress, questions, records, runs)
else
  had, there = nv, call('EXISTS', values, order, log)
end
if there ~= had then
  local missing = {}
  for k = 1, progress and 12 or 4 do
    if (k < 5 or k > 8) and call('EXISTS', KEYS[k]) == 0 then missing[#missing + 1] = KEYS[k] end
  end
  return {'LOST', text(had), missing}
end

local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local present = text(now)

-- Which of progress, questions, records and runs there are, nil = not known: what the change meets and writes tells
-- it mostly, and a call for it costs more.
local has = {}
if nr == 0 or nr == 4 then has = {nr == 4, nr == 4, nr == 4, nr == 4} end

-- A list of the arguments begins with its length, at place at. size is how many arguments an element has.
-- Loops are written out, and lists handed on as they are: all others wait while this runs.
local at = 22
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

-- writeMembers hands members, pairs or fields of a list on as write does.
local function writeMembers(command, key, members)
  for first = 1, #members, 4000 do
    call(command, key, unpack(members, first, math.min(first + 3999, #members)))
  end
end

-- Drop: checkpoints and events come first among the arguments; what is taken away is so before they are written.

local from, to
local gen, elements, fe = s[6], s[5], s[3]
local orderFrom, orderTo = list(2)
local valuesFrom, valuesTo = list(2)
local newFrom, newTo = list(1)
if progress then
  local goneFrom, goneTo = list(1)
  from, to = list(1)
  if to >= from then
    gen = gen + 1
    write('ZREM', order, from, to)
    -- What was long stays in the form of what is long, which takes six times as much, until it is made anew.
    local left = call('ZCARD', order)
    if left > 0 and left <= 128 and left + to - from >= 128 then
      local all = call('ZRANGE', order, 0, -1, 'WITHSCORES')
      call('DEL', order)
      for i = 1, #all, 2 do call('ZADD', order, all[i + 1], all[i]) end
    end
  end
  from, to = list(1)
  write('HDEL', values, from, to)
  if goneTo >= goneFrom and has[1] ~= false then
    local usedUp, fields = {}, call('HKEYS', progress)
    for _, field in ipairs(fields) do
      for i = goneFrom, goneTo do
        if string.sub(field, 1, #A[i]) == A[i] then
          usedUp[#usedUp + 1] = field
          break
        end
      end
    end
    writeMembers('HDEL', progress, usedUp)
    has[1] = #fields > #usedUp
  end
end

-- Checkpoints and events.

local counted = {}
write('ZADD', order, orderFrom, orderTo)
write('HSET', values, valuesFrom, valuesTo)
write('RPUSH', log, newFrom, newTo)
elements = elements + newTo - newFrom + 1
le = tonumber(A[10])
if progress then
  -- Progress: tasks, then memos, of which the first stays.

  from, to = list(2)
  write('HSET', progress, from, to)
  if to >= from then has[1] = true end
  from, to = list(2)
  for i = from, to, 2 do call('HSETNX', progress, A[i], A[i + 1]) end
  if to >= from then has[1] = true end

  -- Questions. The number of a change grows in the partition whatever the clock does; the clock only makes
  -- numbers of several partitions come close to the order in which things happened.

  -- tagMembers returns the members that an interrupt has in tags, each of them after the word before.
  local function tagMembers(text, created, rest, before)
    local found, due, place = {}, nil, 1
    local function add(member)
      if before then found[#found + 1] = before end
      found[#found + 1] = member
    end
    while place <= #text do
      local n, first = string.match(text, '^(%d+):()', place)
      local part = string.sub(text, first, first + n - 1)
      place = first + n
      if not due then
        due = part
        if due ~= '' then add('d\0' .. due .. rest) end
      else
        add('c' .. part .. '\0' .. created .. rest)
        if due ~= '' then add('d' .. part .. '\0' .. due .. rest) end
      end
    end
    return found
  end

  local change, number
  from, to = list(6)
  for i = from, to, 6 do
    local id, member, record, tagged = A[i], A[i + 2], A[i + 4], A[i + 5]
    local created, rest = string.sub(member, 1, 16), string.sub(member, 17)
    local into, outOf = open, closed
    if A[i + 3] ~= '1' then into, outOf = closed, open end
    change = math.max((change or tonumber(call('GET', count) or '0')) + 1, now)
    number = change == now and present or text(change)
    local revision, retag, asks = 1, tagged ~= '', {}
    local known = has[2] == false and {} or call('HMGET', questions, 'r' .. id, 'a' .. A[i + 1])
    local old, asked = known[1], known[2]
    has[2] = true
    if old then
      local r, oldCreated, size, first = string.match(old, '^%d+ (%d+) (%x+):?(%d*) ()')
      revision = (r or 0) + 1
      local oldTags = size and size ~= '' and string.sub(old, first, first + size - 1) or ''
      if oldTags == tagged and oldCreated == created then
        retag = false
      elseif oldTags ~= '' then
        writeMembers('ZREM', tags, tagMembers(oldTags, oldCreated, rest))
      end
      if oldCreated and oldCreated ~= created then
        for _, key in ipairs({inbox, open, closed}) do call('ZREM', key, oldCreated .. rest) end
      end
      call('ZREM', outOf, member)
    else
      local ids = asked and cmsgpack.unpack(asked) or {}
      ids[#ids + 1] = id
      asks = {'a' .. A[i + 1], cmsgpack.pack(ids)}
    end
    local size = tagged ~= '' and ':' .. #tagged or ''
    local numbers = number .. ' ' .. text(revision) .. ' ' .. created .. size .. ' '
    call('HSET', questions, 'r' .. id, numbers .. tagged .. record, unpack(asks))
    if retag then writeMembers('ZADD', tags, tagMembers(tagged, created, rest, '0')) end
    call('ZADD', inbox, number, member)
    call('ZADD', into, '0', member)
  end
  if change then call('SET', count, number) end

  -- Runs, whose order stays, and requests.

  local written = {}
  from, to = list(4)
  for i = from, to, 4 do
    local old = has[3] ~= false and call('HGET', records, 'r' .. A[i])
    local revision = (old and string.match(old, '^%d+') or 0) + 1
    written[#written + 1] = 'r' .. A[i]
    written[#written + 1] = text(revision) .. ' ' .. A[i + 2]
    if A[i + 3] ~= '' then call('HSETNX', records, 'i' .. A[i], A[i + 3]) end
    counted[#counted + 1] = revision
    if not old then call('ZADD', runs, A[i + 1], A[i]) end
    has[3], has[4] = true, true
  end
  from, to = list(2)
  for i = from, to, 2 do
    written[#written + 1] = 'q' .. A[i]
    written[#written + 1] = A[i + 1]
  end
  writeMembers('HSET', records, written)
  if #written > 0 then has[3] = true end
  nr = 0
  for k = 1, 4 do
    if has[k] == nil then
      nr = call('EXISTS', progress, questions, records, runs)
      break
    end
    if has[k] then nr = nr + 1 end
  end
end

-- Trim: the log loses the events before the first to keep.

local keep = tonumber(A[14])
if keep > fe then
  fe = keep
  local gone = elements
  if keep <= le then
    -- Of the elements that begin before it, the last one stays: it may have this event.
    local low, high = 0, elements - 1
    while low < high do
      local middle = math.ceil((low + high) / 2)
      if tonumber(string.match(call('LINDEX', log, middle), '^%d+')) <= keep then low = middle else high = middle - 1 end
    end
    gone = low
  end
  if gone > 0 then call('LTRIM', log, gone, -1) end
  elements = elements - gone
end
if orderTo > orderFrom and valuesTo > valuesFrom and elements > 0 then
  nv = 3
elseif progress or nv < 3 or elements == 0 then
  nv = call('EXISTS', values, order, log)
end

-- Lease: its end is put off by steps of a power of two, a sixteenth of it at most, so that not every change
-- moves the thread in the list of what is due.

local lx = s[8]
if A[7] ~= '0' then
  local _, power = math.frexp(A[7] / 16)
  local step = math.max(1, 2 ^ (power - 1))
  lx = math.ceil((now + A[7]) / step) * step
end
if A[6] ~= '1' then lx = 0 end
local dm = A[16]
if lx > 0 then
  local wake = text(lx) .. '000'
  if dm == '' or wake < dm then dm = wake end
end
if dm ~= '' then dm = dm .. A[1] end

-- Lists: where the thread is in the lists of the partition, and under which tags.

local tm = A[15]
if s[13] ~= tm then
  if s[13] then
    call('ZREM', threads, s[13])
  elseif KEYS[18] then
    call('ZADD', KEYS[18], '0', string.match(A[1], '^[^@]*'))
  end
  call('ZADD', threads, '0', tm)
end

-- tagPlace returns where the thread stands among those with the same tag.
local function tagPlace(tags)
  return '\0' .. string.sub(tags, 1, 16) .. A[1] .. '\0\0' .. string.format('%08x', #A[1])
end

-- listMembers returns the members that the thread has for its tags and its state, each after the word before.
local function listMembers(tags, state, before)
  local members, place, at = {}, tagPlace(tags), 17
  local function add(tag)
    if before then members[#members + 1] = before end
    members[#members + 1] = tag .. place
  end
  add('s' .. state)
  while at <= #tags do
    local n, first = string.match(tags, '^(%d+):()', at)
    at = first + n
    add(string.sub(tags, first, at - 1))
  end
  return members
end

local tagged, state, wasTagged, was = A[20], A[21], s[15] or '', s[16] or ''
if wasTagged ~= tagged then
  if wasTagged ~= '' then call('ZREM', KEYS[8], unpack(listMembers(wasTagged, was))) end
  call('ZADD', KEYS[8], unpack(listMembers(tagged, state, '0')))
elseif was ~= state then
  local place = tagPlace(tagged)
  call('ZREM', KEYS[8], 's' .. was .. place)
  call('ZADD', KEYS[8], '0', 's' .. state .. place)
end
if s[14] ~= dm then
  if s[14] ~= '' then call('ZREM', due, s[14]) end
  if dm ~= '' then call('ZADD', due, '0', dm) end
end
rev = rev + 1
call('HSET', head, 'head', A[8], 'n', cmsgpack.pack(
  {rev, tonumber(A[9]), fe, le, elements, gen, now, lx, nv, nr, A[5], A[4], tm, dm, tagged, state}))

-- Notify: notify publishes the change to followers, and returns how many connections listen to the thread.
-- Nothing in it may fail: the change is made.

local function notify()
  local n = redis.pcall('PUBSUB', 'SHARDNUMSUB', head)
  local heard = n[2] or 0
  if heard > 0 and (newTo >= newFrom or A[18] ~= '') then
    local said = {A[17], A[18]}
    local size = #A[18]
    for k = newFrom, newTo do
      said[#said + 1] = 'e' .. #A[k] .. ':'
      said[#said + 1] = A[k]
      size = size + #said[#said - 1] + #A[k]
    end
    if size > 262144 then said = {A[17], 'l0:'} end
    redis.pcall('SPUBLISH', head, table.concat(said))
  end
  return heard
end

local heard = notify()
return {'OK', text(rev), ends(lx), present, heard, counted}
