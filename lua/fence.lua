-- The terms in force for a policy in a partition, and the level of a bucket nobody has touched under them.
--
-- Keeps: a higher version takes over at once, a lower one changes nothing, under the same version the stricter rate and
--   burst win; a bucket that is carried over never holds more than its new burst less what is outstanding.
-- Twin of: src/ceiling/fence.ts, which has the reasons. Clock: `now`. Writes nothing; whoever calls writes the header
--   when told that it changed. Used by: ledger.lua, lease.lua.

local function sameRate(a, b)
  return a.rateNum == b.rateNum and a.rateDen == b.rateDen
end

local function sameTerms(a, b)
  return a.burst == b.burst and sameRate(a, b)
end

local function inherit(level, from, to, inheritance, outstanding)
  if inheritance == 'proportional' and level.tokens > 0 then
    level.tokens = multiplyDivide(level.tokens, to.burst, from.burst, 0)
  elseif inheritance == 'additive' then
    level.tokens = level.tokens + (to.burst - from.burst)
  elseif inheritance == 'reset' then
    level.tokens = max(level.tokens, 0) + to.burst
  end
  level.remainder = 0
  capAt(level, to.burst - outstanding)
end

local function changeTerms(fence, burst, rateNum, rateDen)
  local from = { burst = fence.burst, rateNum = fence.rateNum, rateDen = fence.rateDen }
  refill(fence.untouched, from, from.burst)
  fence.burst = burst
  fence.rateNum = rateNum
  fence.rateDen = rateDen
  inherit(fence.untouched, from, fence, fence.inheritance, 0)
end

local function newFence(call, bornAt)
  local fence = {
    version = call.version,
    burst = call.burst,
    rateNum = call.rateNum,
    rateDen = call.rateDen,
    inheritance = call.inheritance,
    resetAt = 0,
    assertedAt = 0,
    untouched = { tokens = NEW_STORE == 'full' and call.burst or 0, remainder = 0, at = min(bornAt, now) },
  }
  refill(fence.untouched, fence, fence.burst)
  return fence
end

local function untouchedLevel(fence)
  local untouched = fence.untouched
  local level = { tokens = untouched.tokens, remainder = untouched.remainder, at = untouched.at }
  refill(level, fence, fence.burst)
  return level
end

local function stepBack(fence)
  local changed = false
  if fence.assertedAt > now then
    fence.assertedAt = now
    changed = true
  end
  if fence.resetAt > now then
    fence.resetAt = now
    changed = true
  end
  if fence.untouched.at - now <= MAX_SKEW then return changed end
  fence.untouched.at = now
  return true
end

-- Answers whether the fence changed, and whether terms of one version disagree.
local function meetFence(fence, call)
  local changed = stepBack(fence)
  if call.version > fence.version then
    local inheritance = call.inheritance
    if inheritance == 'reset' then
      if fence.resetAt > 0 and now - fence.resetAt < refillTime(call.burst, call) then
        inheritance = 'as-is'
      else
        fence.resetAt = now
      end
    end
    fence.version = call.version
    fence.assertedAt = 0
    fence.inheritance = inheritance
    changeTerms(fence, call.burst, call.rateNum, call.rateDen)
    return true, false
  end
  if call.version < fence.version or sameTerms(fence, call) then
    if call.version == fence.version and fence.assertedAt > 0 and now - fence.assertedAt > ASSERT_EVERY then
      fence.assertedAt = now
      changed = true
    end
    return changed, false
  end
  local slower = call.rateNum / call.rateDen < fence.rateNum / fence.rateDen
  local smaller = call.burst < fence.burst
  if slower or smaller then
    fence.assertedAt = now
    fence.inheritance = 'as-is'
    local rate = slower and call or fence
    changeTerms(fence, smaller and call.burst or fence.burst, rate.rateNum, rate.rateDen)
    return true, true
  end
  local standsForPart = call.burst == fence.burst or sameRate(fence, call)
  if fence.assertedAt == 0 or standsForPart then
    if fence.assertedAt == 0 or now - fence.assertedAt > ASSERT_EVERY then
      fence.assertedAt = now
      changed = true
    end
  elseif now - fence.assertedAt > CONTEST then
    fence.assertedAt = 0
    fence.inheritance = 'as-is'
    changeTerms(fence, call.burst, call.rateNum, call.rateDen)
    return true, false
  end
  return changed, true
end
