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
local at = 4 + 2 * ranges
local function rest(member) return string.sub(member, string.find(member, '\0', 1, true) + 1) end

local function meets(place)
  local next = at + 1
  for _ = 1, tonumber(A[at]) do
    local n, has = tonumber(A[next]), false
    for k = next + 1, next + n do
      if call('ZSCORE', KEYS[1], A[1] .. A[k] .. '\0' .. place) then
        has = true
        break
      end
    end
    if not has then return false end
    next = next + n + 1
  end
  return true
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
local found = {last}
for i = 1, math.min(#all, limit) do
  if last ~= '' and all[i] > last then break end
  if meets(all[i]) then found[#found + 1] = all[i] end
end
return found
