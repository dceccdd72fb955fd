/**
 * What most limiters keep in Redis: two numbers a bucket, no lease, no holder.
 * KEYS[1] the bucket; ARGV rate a second, burst, cost. Answers whether it was allowed, and what is left.
 */
export const PLAIN_BUCKET = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local b = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local rate, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local tokens, at = tonumber(b[1]) or burst, tonumber(b[2]) or now
tokens = math.min(burst, tokens + math.max(0, now - at) * rate / 1000000)
local allowed = 0
if tokens >= cost then tokens = tokens - cost allowed = 1 end
redis.call('HSET', KEYS[1], 'tokens', string.format('%.17g', tokens), 'at', string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil(burst / rate * 1000))
return { allowed, math.floor(tokens) }`;
