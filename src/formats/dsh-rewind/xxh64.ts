const mask = 0xffffffffffffffffn
const prime1 = 0x9e3779b185ebca87n
const prime2 = 0xc2b2ae3d27d4eb4fn
const prime3 = 0x165667b19e3779f9n
const prime4 = 0x85ebca77c2b2ae63n
const prime5 = 0x27d4eb2f165667c5n

/** What a frame of zstd ends with: the low 32 bits of XXH64 of its content, seed 0 (RFC 8878 section 3.1.1). */
export function frameChecksum(bytes: Buffer): number {
  return Number(xxh64(bytes) & 0xffffffffn)
}

function xxh64(bytes: Buffer): bigint {
  let at = 0
  let hash = prime5
  if (bytes.length >= 32) {
    let [a, b, c, d] = [(prime1 + prime2) & mask, prime2, 0n, (mask + 1n - prime1) & mask]
    for (; at + 32 <= bytes.length; at += 32) {
      a = round(a, bytes.readBigUInt64LE(at))
      b = round(b, bytes.readBigUInt64LE(at + 8))
      c = round(c, bytes.readBigUInt64LE(at + 16))
      d = round(d, bytes.readBigUInt64LE(at + 24))
    }
    hash = (turned(a, 1n) + turned(b, 7n) + turned(c, 12n) + turned(d, 18n)) & mask
    for (const lane of [a, b, c, d]) hash = ((hash ^ round(0n, lane)) * prime1 + prime4) & mask
  }
  hash = (hash + BigInt(bytes.length)) & mask
  for (; at + 8 <= bytes.length; at += 8) hash = (turned(hash ^ round(0n, bytes.readBigUInt64LE(at)), 27n) * prime1 + prime4) & mask
  if (at + 4 <= bytes.length) {
    hash = (turned(hash ^ ((BigInt(bytes.readUInt32LE(at)) * prime1) & mask), 23n) * prime2 + prime3) & mask
    at += 4
  }
  for (; at < bytes.length; at += 1) hash = (turned(hash ^ ((BigInt(bytes.readUInt8(at)) * prime5) & mask), 11n) * prime1) & mask
  hash = ((hash ^ (hash >> 33n)) * prime2) & mask
  hash = ((hash ^ (hash >> 29n)) * prime3) & mask
  return hash ^ (hash >> 32n)
}

function round(lane: bigint, input: bigint): bigint {
  return (turned((lane + input * prime2) & mask, 31n) * prime1) & mask
}

function turned(value: bigint, bits: bigint): bigint {
  return ((value << bits) | (value >> (64n - bits))) & mask
}
