import type { Ruling } from '../http/index.js';

const PASSED = new WeakMap<object, Ruling[]>();
const NONE: readonly Ruling[] = Object.freeze([]);

/**
 * What policies have said so far about a request, for handlers and logs.
 *
 * @param request the Node request (`req` of Express, `request.raw` of Fastify, `ctx.req` of Koa) or the Fetch `Request`
 */
export function rulingsOf(request: object): readonly Ruling[] {
  return PASSED.get(request) ?? NONE;
}

/** Adds rulings to those of a request; answers whether one of them is there already: the same policy for the same key. */
export function remember(request: object, rulings: readonly Ruling[]): boolean {
  const known = PASSED.get(request);
  if (known === undefined) {
    PASSED.set(request, [...rulings]);
    return false;
  }
  let twice = false;
  for (const ruling of rulings) {
    const before = known.findIndex(({ policy, key }) => policy === ruling.policy && key === ruling.key);
    if (before === -1) known.push(ruling);
    else known[before] = ruling;
    twice ||= before !== -1;
  }
  return twice;
}
