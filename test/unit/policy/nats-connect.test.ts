import { describe, expect, it } from 'vitest';
import { MissingPeerError } from '../../../src/errors.js';
import { OutgoingHeaders } from '../../../src/policy/nats-client.js';
import { connectNats, importPeer } from '../../../src/policy/nats-connect.js';

const NEWER = ['@nats-io/transport-node', '@nats-io/jetstream', '@nats-io/kv'];

/** A machine on which only these packages are installed, and what was connected to there. */
function installed(...packages: string[]) {
  const connected: { name: string; options: Record<string, unknown> }[] = [];
  const load = async (name: string) => {
    if (!packages.includes(name)) {
      const message = `Cannot find package '${name}' imported from /app/index.js`;
      throw Object.assign(new Error(message), { code: 'ERR_MODULE_NOT_FOUND' });
    }
    return { connect: async (options: Record<string, unknown>) => connected.push({ name, options }) };
  };
  return { connected, load };
}

describe('connectNats', () => {
  it('prefers the newer client', async () => {
    const { connected, load } = installed(...NEWER, 'nats');
    await connectNats('nats://a:4222', 500, load);
    expect(connected).toEqual([
      {
        name: '@nats-io/transport-node',
        options: expect.objectContaining({
          servers: ['nats://a:4222'],
          timeout: 500,
          maxReconnectAttempts: -1,
          pingInterval: 10_000,
        }),
      },
    ]);
    expect(connected[0]?.options).not.toHaveProperty('waitOnFirstConnect');
  });

  it.each(NEWER)('takes the older client where %s is not installed', async (missing) => {
    const { connected, load } = installed(...NEWER.filter((name) => name !== missing), 'nats');
    await connectNats('nats://a', 500, load);
    expect(connected.map(({ name }) => name)).toEqual(['nats']);
  });

  it.each(NEWER)('names %s where that is missing and there is no older client', async (missing) => {
    const { load } = installed(...NEWER.filter((name) => name !== missing));
    const refused = connectNats('nats://a', 500, load);
    await expect(refused).rejects.toThrow(MissingPeerError);
    await expect(refused).rejects.toThrow(
      `needs the package "${missing}", which is not installed: npm install ${missing}.`,
    );
  });

  it.each([
    ['nats://u:p@a:1', { servers: ['nats://a:1'], user: 'u', pass: 'p' }],
    ['tls://u%40x:p%3A%2Fp:q@a', { servers: ['tls://a'], user: 'u@x', pass: 'p:/p:q' }],
    ['nats://secret@a:1', { servers: ['nats://a:1'], token: 'secret' }],
    ['nats://u:p@a:1, nats://b:2,c', { servers: ['nats://a:1', 'nats://b:2', 'c'], user: 'u', pass: 'p' }],
    ['nats://[::1]:4222', { servers: ['nats://[::1]:4222'] }],
  ])('reads %s', async (url, expected) => {
    const { connected, load } = installed('nats');
    await connectNats(url, 500, load);
    const { servers, user, pass, token } = connected[0]?.options ?? {};
    expect({ servers, user, pass, token }).toEqual({ user: undefined, pass: undefined, token: undefined, ...expected });
  });
});

describe('importPeer', () => {
  it('says what is missing, as a real import fails', async () => {
    await expect(importPeer('headgate-is-not-a-package')).rejects.toThrow(MissingPeerError);
  });

  it('does not call a package missing that lacks one of its own', async () => {
    const broken = Object.assign(new Error("Cannot find package 'other' imported from nats"), {
      code: 'ERR_MODULE_NOT_FOUND',
    });
    await expect(importPeer('nats', () => Promise.reject(broken))).rejects.toBe(broken);
  });
});

describe('OutgoingHeaders', () => {
  it('encode as the protocol asks, without entries that could break it', () => {
    const headers = new OutgoingHeaders({
      traceparent: '00-a-b-01',
      'Headgate-Sent-At': '17',
      'bad name': 'x',
      bad: 'a\r\nNats-Msg-Id: 1',
      worse: 'ü',
    });
    expect(new TextDecoder().decode(headers.encode())).toBe(
      'NATS/1.0\r\ntraceparent: 00-a-b-01\r\nHeadgate-Sent-At: 17\r\n\r\n',
    );
    expect(headers.get('traceparent')).toBe('00-a-b-01');
    expect(headers.get('bad')).toBe('');
    expect([...headers.keys()]).toEqual(['traceparent', 'Headgate-Sent-At']);
  });
});
