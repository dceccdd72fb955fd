import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { HangUp } from '../../../src/middleware/hang-up.js';
import { limiterOf } from '../../support/limiter-under-test.js';

function response() {
  const outgoing = Object.assign(new EventEmitter(), { destroyed: false });
  const close = (): void => {
    outgoing.destroyed = true;
    outgoing.emit('close');
  };
  return { outgoing, close, signal: new HangUp(outgoing as unknown as ServerResponse) as unknown as AbortSignal };
}

it('a request listens for its client hanging up only while it waits', async () => {
  const { api, time } = await limiterOf({ local: { rate: 1, burst: 1 } });
  const { outgoing, close, signal } = response();
  const options = { maxWaitMs: 5_000, signal };
  await api.acquire('k', options);
  expect(outgoing.listenerCount('close')).toBe(0);

  const served = api.acquire('k', options);
  expect(outgoing.listenerCount('close')).toBe(1);
  await time.advance(1_000);
  await served;
  expect(outgoing.listenerCount('close')).toBe(0);

  const gone = api.acquire('k', options);
  close();
  await expect(gone).rejects.toThrow('The client has hung up.');
  expect(outgoing.listenerCount('close')).toBe(0);
  await expect(api.acquire('k', options)).rejects.toThrow('The client has hung up.');
  expect(() => signal.throwIfAborted()).toThrow('The client has hung up.');
});
