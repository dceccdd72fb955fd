export { type AddressKeyOptions, addressKey, normalAddress } from './address.js';
export { compoundKey } from './compound-key.js';
export { keyDigest } from './key-digest.js';
export { type TrustedProxies, trustedProxies } from './trusted-proxies.js';
