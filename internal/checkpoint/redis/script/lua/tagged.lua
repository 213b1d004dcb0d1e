#!lua flags=no-writes
-- Lists members of tags of a partition that have further tags: those of several ranges, merged, each once.
--
-- KEYS   1 tags
-- ARGV   1 order, a letter  2 limit
--        3 how many ranges there are, then of each its begin and its end, in the form of ZRANGEBYLEX
--        then how many conditions there are, and of each how many tags it names, and the tags: one of them is needed
-- Returns the member up to which the list is complete, '' = to the end, then those that meet all conditions, all of
--         them without order and tag
local A, call = ARGV, redis.call
local limit, ranges = tonumber(A[2]), tonumber(A[3])
local function rest(member) return string.sub(member, string.find(member, '\0', 1, true) + 1) end

-- keepTagged returns those of some places that have one of the tags from one argument to another.
local function keepTagged(places, from, to)
  local has, kept = {}, {}
  for k = from, to do
    local members, asked = {}, {}
    for i, place in ipairs(places) do
      if not has[i] then
        members[#members + 1] = A[1] .. A[k] .. '\0' .. place
        asked[#asked + 1] = i
      end
    end
    if #members > 0 then
      for j, score in ipairs(call('ZMSCORE', KEYS[1], unpack(members))) do
        if score then has[asked[j]] = true end
      end
    end
  end
  for i, place in ipairs(places) do
    if has[i] then kept[#kept + 1] = place end
  end
  return kept
end

local all, known, last = {}, {}, ''
for r = 0, ranges - 1 do
  local list = call('ZRANGEBYLEX', KEYS[1], A[4 + 2 * r], A[5 + 2 * r], 'LIMIT', 0, limit)
  for _, member in ipairs(list) do
    local place = rest(member)
    if not known[place] then
      known[place] = true
      all[#all + 1] = place
    end
  end
  if #list >= limit then
    local place = rest(list[#list])
    if last == '' or place < last then last = place end
  end
end
table.sort(all)
if #all > limit and (last == '' or all[limit] < last) then last = all[limit] end
local places = {}
for i = 1, math.min(#all, limit) do
  if last ~= '' and all[i] > last then break end
  places[i] = all[i]
end
local at = 4 + 2 * ranges
for _ = 1, tonumber(A[at]) do
  local n = tonumber(A[at + 1])
  places = keepTagged(places, at + 2, at + 1 + n)
  at = at + 1 + n
end
return {last, unpack(places)}
