import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { onAbort } from '../../src/abort.js';

function listeners({ signal }: AbortController): number {
  return getEventListeners(signal, 'abort').length;
}

describe('onAbort', () => {
  it('calls all who wait under a signal, in their order and once, through one listener', () => {
    const control = new AbortController();
    const called: number[] = [];
    for (let i = 0; i < 1_000; i++) onAbort(control.signal, () => called.push(i));
    expect(listeners(control)).toBe(1);
    control.abort();
    control.signal.dispatchEvent(new Event('abort'));
    expect(called).toEqual(Array.from({ length: 1_000 }, (_, i) => i));
    expect(listeners(control)).toBe(0);
  });

  it('calls nobody who has been called off, not even by one called before, and listens no longer than somebody waits', () => {
    const control = new AbortController();
    const called: string[] = [];
    const offs: (() => void)[] = [];
    offs.push(onAbort(control.signal, () => called.push('never')));
    onAbort(control.signal, () => {
      called.push('first');
      offs[1]?.();
    });
    offs.push(onAbort(control.signal, () => called.push('called off')));
    offs[0]?.();
    offs[0]?.();
    control.abort();
    expect(called).toEqual(['first']);

    const other = new AbortController();
    const off = onAbort(other.signal, () => called.push('never'));
    off();
    expect(listeners(other)).toBe(0);
    const again = onAbort(other.signal, () => called.push('again'));
    // Whoever left before has no say in who waits now.
    off();
    expect(listeners(other)).toBe(1);
    other.abort();
    again();
    expect(called).toEqual(['first', 'again']);
  });

  it('never calls without a signal', () => {
    expect(onAbort(undefined, () => expect.unreachable())()).toBeUndefined();
  });
});
