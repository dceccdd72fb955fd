-- Functions on demand classes: a flat list, sorted by class: class, demand, weight, …
--
-- Keeps: the sums of a class are those of the records counted in it; exact below 2^53.
-- Twin of: the second half of src/ceiling/allotment.ts. Clock: none. Writes nothing; changes the list.
-- Used by: ledger.lua, allotment.lua.
local function demandClass(demand)
  if demand < 1 then return 0 end
  local index, rest = 1, demand
  while rest >= 65536 do
    rest = rest / 65536
    index = index + 64
  end
  while rest >= 2 do
    rest = rest / 2
    index = index + 4
  end
  if rest >= 1.681792830507429 then return index + 3 end
  if rest >= 1.4142135623730951 then return index + 2 end
  if rest >= 1.189207115002721 then return index + 1 end
  return index
end

local function joinMembers(classes, demand, weight)
  local index, place = demandClass(demand / weight), 1
  while classes[place] and classes[place] < index do place = place + 3 end
  if classes[place] == index then
    classes[place + 1] = classes[place + 1] + demand
    classes[place + 2] = classes[place + 2] + weight
  else
    for i = #classes, place, -1 do classes[i + 3] = classes[i] end
    classes[place], classes[place + 1], classes[place + 2] = index, demand, weight
  end
end

local function leaveMembers(classes, demand, weight)
  local index, place = demandClass(demand / weight), 1
  while classes[place] and classes[place] < index do place = place + 3 end
  if classes[place] ~= index then return end
  classes[place + 1] = classes[place + 1] - demand
  classes[place + 2] = classes[place + 2] - weight
  if classes[place + 2] <= 0 then
    for i = place, #classes do classes[i] = classes[i + 3] end
  end
end

-- The fair level, and the weight of all members.
local function fairLevel(classes, rate)
  local left, weight, demand = rate, 0, 0
  for i = 1, #classes, 3 do
    demand = demand + classes[i + 1]
    weight = weight + classes[i + 2]
  end
  local total = weight
  if demand <= rate then return 0, total, 0, demand end
  for i = 1, #classes, 3 do
    if (classes[i + 1] / classes[i + 2]) * weight > left then break end
    left = left - classes[i + 1]
    weight = weight - classes[i + 2]
  end
  return left / weight, total, weight, demand
end
