import { describe, expect, it } from 'vitest';
import { trustedProxies } from '../../../src/key/trusted-proxies.js';

const proxies = trustedProxies(['loopback', '10.0.0.0/8', '2001:db8:ed9e::/48', '198.51.100.7']);

describe('the client behind trusted proxies', () => {
  it.each([
    ['nobody in between', '203.0.113.9', [], '203.0.113.9'],
    ['an untrusted peer, whatever it says', '203.0.113.9', ['1.1.1.1', '10.0.0.1'], '203.0.113.9'],
    ['one proxy', '10.0.0.1', ['203.0.113.9'], '203.0.113.9'],
    ['two proxies', '10.0.0.1', ['203.0.113.9', '10.0.0.2'], '203.0.113.9'],
    ['three proxies, one of a CDN', '127.0.0.1', ['203.0.113.9', '2001:db8:ed9e::5', '10.0.0.2'], '203.0.113.9'],
    ['a made-up address in front', '10.0.0.1', ['1.1.1.1', '203.0.113.9', '10.0.0.2'], '203.0.113.9'],
    ['an untrusted proxy in the middle', '10.0.0.1', ['1.1.1.1', '192.0.2.50', '10.0.0.2'], '192.0.2.50'],
    ['only trusted ones', '10.0.0.1', ['10.0.0.3', '10.0.0.2'], '10.0.0.3'],
    ['a proxy that hides its client', '10.0.0.1', ['1.1.1.1', 'unknown', '10.0.0.2'], '10.0.0.2'],
    ['an empty entry', '10.0.0.1', ['1.1.1.1', '', ' 10.0.0.2 '], '10.0.0.2'],
    ['other spellings', '::ffff:10.0.0.1', ['[2001:DB8::9]:443', '::ffff:a00:2'], '2001:db8::9'],
    ['no peer address', 'unix socket', ['203.0.113.9'], undefined],
  ])('with %s (C121)', (_, peer, forwarded, client) => {
    expect(proxies.clientOf(peer, forwarded)).toBe(client);
  });

  it('are the networks, addresses and names that were given, in any spelling', () => {
    for (const address of ['127.3.2.1', '::1', '10.255.0.1', '::ffff:10.0.0.1', '198.51.100.7', '2001:db8:ed9e:1::1']) {
      expect(proxies.has(address), address).toBe(true);
    }
    for (const address of ['11.0.0.1', '198.51.100.8', '2001:db8:ed9f::1', '192.168.0.1', 'localhost', '']) {
      expect(proxies.has(address), address).toBe(false);
    }
    expect(trustedProxies(['private', 'link-local']).has('192.168.0.1')).toBe(true);
    expect(trustedProxies(['0.0.0.0/0']).has('8.8.8.8')).toBe(true);
    expect(trustedProxies([]).has('127.0.0.1')).toBe(false);
  });

  it.each([['10.0.0.0/33'], ['10.0.0.0/'], ['10.0.0.0/8/8'], ['example.org'], ['*'], ['toString'], [8 as never]])(
    'refuses %j',
    (range) => {
      expect(() => trustedProxies([range])).toThrow('Expected a trusted proxy to be an address, a network');
    },
  );

  it('refuses a single text: its characters are no networks', () => {
    expect(() => trustedProxies('10.0.0.0/8' as never)).toThrow('to be an array of networks');
  });
});
