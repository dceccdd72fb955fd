const SLOTS = 16_384;
/** CRC-16/XMODEM, as the Redis Cluster specification has it. */
const POLYNOMIAL = 0x1021;

/** The slot of a Redis Cluster that a key is in: by its hash tag, where it has one that is not empty. */
export function clusterSlot(key: string): number {
  const opens = key.indexOf('{');
  const closes = opens < 0 ? -1 : key.indexOf('}', opens);
  const hashed = closes > opens + 1 ? key.slice(opens + 1, closes) : key;
  let crc = 0;
  for (const byte of new TextEncoder().encode(hashed)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? (crc << 1) ^ POLYNOMIAL : crc << 1) & 0xffff;
  }
  return crc % SLOTS;
}
