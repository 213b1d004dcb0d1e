#!lua flags=no-writes
-- Lists members of tags of a partition that have further tags.
--
-- KEYS   1 tags
-- ARGV   1 order, a letter  2 limit of each range
--        3 how many ranges there are, then of each its begin and its end, in the form of ZRANGEBYLEX
--        then how many conditions there are, and of each how many tags it names, and the tags: one of them is needed
-- Returns of each range how many members there were, the last of them or '', and those that meet all conditions,
--         without order and tag
local A, call = ARGV, redis.call
local ranges = tonumber(A[3])
local at = 4 + 2 * ranges
local function rest(member) return string.sub(member, string.find(member, '\0', 1, true) + 1) end

local function meets(place)
  local next = at + 1
  for _ = 1, tonumber(A[at]) do
    local n, has = tonumber(A[next]), false
    for k = next + 1, next + n do
      if not has and call('ZSCORE', KEYS[1], A[1] .. A[k] .. '\0' .. place) then has = true end
    end
    if not has then return false end
    next = next + n + 1
  end
  return true
end

local found = {}
for r = 0, ranges - 1 do
  local list = call('ZRANGEBYLEX', KEYS[1], A[4 + 2 * r], A[5 + 2 * r], 'LIMIT', 0, A[2])
  local places = {}
  for _, member in ipairs(list) do
    local place = rest(member)
    if meets(place) then places[#places + 1] = place end
  end
  found[#found + 1] = {#list, #list > 0 and rest(list[#list]) or '', places}
end
return found
