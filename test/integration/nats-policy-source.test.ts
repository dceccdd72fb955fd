import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { PolicySourceError } from '../../src/errors.js';
import { PolicyBucket } from '../../src/policy/nats-bucket.js';
import type { NatsConnection } from '../../src/policy/nats-client.js';
import type { NatsPolicySourceOptions } from '../../src/policy/nats-policies.js';
import { natsPolicySource } from '../../src/policy/nats-source.js';
import type { PolicySource } from '../../src/policy/policy-source.js';
import { describePolicySource, policy } from '../contract/policy-source.js';
import { RecordingListener } from '../contract/policy-source-listener.js';
import { eventually } from '../support/eventually.js';
import { CLIENTS, putRaw } from './nats-clients.js';

let buckets = 0;
/** A name that no other test on the shared server uses. */
function newBucket(): string {
  buckets += 1;
  return `test_${process.pid}_${buckets}`;
}

for (const { client, connect } of CLIENTS) {
  describePolicySource(`NATS through ${client}`, async () => {
    const connection = await connect(inject('natsUrl'));
    const bucket = newBucket();
    const sources: PolicySource[] = [];
    return {
      source() {
        const source = natsPolicySource({ nats: connection, bucket });
        sources.push(source);
        return source;
      },
      async dispose() {
        for (const source of sources) await source.close();
        await connection.close();
      },
    };
  });

  describe(`natsPolicySource through ${client}`, () => {
    let connection: NatsConnection;
    let bucket: string;
    let listener: RecordingListener;
    const open: PolicySource[] = [];

    function createSource(options: Partial<NatsPolicySourceOptions> = {}): PolicySource {
      const source = natsPolicySource({ nats: connection, bucket, ...options });
      open.push(source);
      return source;
    }

    beforeAll(async () => {
      connection = await connect(inject('natsUrl'));
    });
    afterAll(() => connection.close());
    beforeEach(() => {
      bucket = newBucket();
      listener = new RecordingListener();
    });
    afterEach(async () => {
      for (const source of open.splice(0)) await source.close();
    });

    it('never closes the connection it was given, and leaves nothing behind on it', async () => {
      const source = createSource();
      await source.watch(listener);
      await source.close();
      expect(connection.isClosed()).toBe(false);
      await connection.flush();
      await createSource().publish(policy('api', 1), 0);
      await connection.flush();
      expect(listener.updates).toEqual([]);
    });

    it('sends the bytes it stores as a hint too, once they are stored, with the trace and the time', async () => {
      const before = Date.now();
      const trace = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'a=1' };
      const stored = PolicyBucket.open(connection, bucket, 2_000);
      const hints: { subject: string; text: string; headers: string[]; revision: Promise<number | undefined> }[] = [];
      connection.subscribe(`headgate.${bucket}.>`, {
        callback: (_, { subject, data, headers }) => {
          hints.push({
            subject,
            text: new TextDecoder().decode(data),
            headers: ['traceparent', 'tracestate', 'Headgate-Sent-At'].map((name) => headers?.get(name) ?? ''),
            revision: stored.then((opened) => opened.get('api')).then((entry) => entry?.revision),
          });
        },
      });
      await connection.flush();
      await createSource().publish(policy('api', 1), 0, trace);
      const hint = await eventually(() => hints[0], 'the hint came');
      expect(hint).toMatchObject({
        subject: `headgate.${bucket}.api`,
        text: JSON.stringify(policy('api', 1)),
        headers: [trace.traceparent, trace.tracestate, expect.stringMatching(/^\d{13}$/)],
      });
      expect(Number(hint?.headers[2])).toBeGreaterThanOrEqual(before);
      expect(await hint?.revision).toBe(1);
    });

    it('uses the bucket headgate_policies and the subject headgate.policy.<name> unless told otherwise', async () => {
      const subjects: string[] = [];
      connection.subscribe('headgate.policy.*', { callback: (_, { subject }) => subjects.push(subject) });
      await connection.flush();
      const source = natsPolicySource({ nats: connection });
      open.push(source);
      const name = `default-${bucket}`;
      await source.publish(policy(name, 1), 0);
      await eventually(() => subjects.includes(`headgate.policy.${name}`), 'the hint came');
      const stored = await (await PolicyBucket.open(connection, 'headgate_policies', 2_000)).get(name);
      expect(stored?.operation).toBe('PUT');
    });

    it('delivers a change by hint and by watch, with the time it was sent', async () => {
      const source = createSource();
      await source.watch(listener);
      const before = Date.now();
      await source.publish(policy('api', 1), 0);
      await eventually(() => new Set(listener.updates.map(({ via }) => via)).size === 2, 'it came by both roads');
      for (const update of listener.updates) {
        expect(update.document).toEqual(policy('api', 1));
        expect(update.publishedAt).toBeGreaterThanOrEqual(before);
        expect(update.publishedAt).toBeLessThanOrEqual(Date.now());
      }
    });

    it('delivers a hint that nobody stored: the hint alone is enough', async () => {
      await createSource().watch(listener);
      connection.publish(`headgate.${bucket}.a.b`, new TextEncoder().encode(JSON.stringify(policy('a.b', 4))));
      await eventually(() => listener.version('a.b') === 4, 'the hint was delivered');
      expect(listener.updates).toEqual([{ name: 'a.b', document: policy('a.b', 4), via: 'hint' }]);
    });

    it('delivers a change that was stored without a hint', async () => {
      await createSource().watch(listener);
      await putRaw(connection, bucket, 'api', JSON.stringify(policy('api', 4)));
      await eventually(() => listener.version('api') === 4, 'the watch delivered it');
      expect(listener.updates).toMatchObject([{ name: 'api', via: 'watch', publishedAt: expect.any(Number) }]);
    });

    it('passes a bad document on as it is, does not list it, and lets it be replaced (C143, C146)', async () => {
      await putRaw(connection, bucket, 'json', '{"name":"json"}');
      await putRaw(connection, bucket, 'text', '{"name');
      await putRaw(connection, bucket, 'other', JSON.stringify(policy('api', 1)));
      const source = createSource();
      await source.watch(listener);
      expect(listener.updates).toMatchObject([
        { name: 'json', document: { name: 'json' } },
        { name: 'text', document: Buffer.from('{"name') },
        { name: 'other', document: policy('api', 1) },
      ]);
      expect(await source.list()).toEqual([]);
      for (const name of ['json', 'text', 'other']) await source.publish(policy(name, 1), 0);
      expect(await source.list()).toHaveLength(3);
    });

    it('reports a removal, and lets the policy be published again', async () => {
      const source = createSource();
      await source.publish(policy('api', 5), 0);
      await source.watch(listener);
      const opened = await PolicyBucket.open(connection, bucket, 2_000);
      // As `nats kv del` does.
      await opened.put('api', new Uint8Array(), 1, { 'KV-Operation': 'DEL' });
      await eventually(() => listener.updates.some(({ document }) => document === undefined), 'the removal came');
      expect(await source.list()).toEqual([]);
      await expect(source.publish(policy('api', 6), 5)).rejects.toThrow('found it not stored');
      await source.publish(policy('api', 6), 0);
      await eventually(() => listener.version('api') === 6, 'the new one came');
    });

    it('reads only the newest of a bucket that keeps history', async () => {
      const stream = { name: `KV_${bucket}`, subjects: [`$KV.${bucket}.>`], max_msgs_per_subject: 10 };
      const created = await (
        connection as unknown as { request(subject: string, data: string): Promise<{ string(): string }> }
      ).request(`$JS.API.STREAM.CREATE.KV_${bucket}`, JSON.stringify({ ...stream, allow_rollup_hdrs: true }));
      expect(JSON.parse(created.string())).not.toHaveProperty('error');
      const source = createSource();
      await source.publish(policy('api', 1), 0);
      await source.publish(policy('api', 2), 1);
      expect(await source.list()).toEqual([policy('api', 2)]);
      await source.watch(listener);
      expect(listener.updates.map(({ document }) => document)).toEqual([policy('api', 2)]);
    });

    it('reads everything again after a while, unasked', async () => {
      await createSource({ rereadMs: 20 }).watch(listener);
      await createSource().publish(policy('api', 1), 0);
      await eventually(() => listener.updates.filter(({ via }) => via === 'watch').length >= 3, 'it was read again');
      expect(listener.troubles).toEqual([]);
    });

    it('serves one limiter', async () => {
      const source = createSource();
      await source.watch(listener);
      await expect(source.watch(listener)).rejects.toThrow(PolicySourceError);
    });

    it('says that the connection it was given is closed', async () => {
      const closed = await connect(inject('natsUrl'));
      await closed.close();
      await expect(createSource({ nats: closed }).watch(listener)).rejects.toThrow(
        'Expected an open NATS connection, got one that is closed: known policies stay and change no more.',
      );
    });

    it('reports it when its owner closes the connection, and keeps quiet from then on', async () => {
      const given = await connect(inject('natsUrl'));
      const source = createSource({ nats: given });
      await source.watch(listener);
      await given.close();
      await eventually(() => listener.heard('got one that is closed'), 'the end was reported');
      await expect(source.publish(policy('api', 1), 0)).rejects.toThrow(PolicySourceError);
    });
  });
}

describe('natsPolicySource with a URL', () => {
  it('makes a connection of its own and closes it', async () => {
    const listener = new RecordingListener();
    const source = natsPolicySource({ nats: inject('natsUrl'), bucket: newBucket() });
    await source.watch(listener);
    await source.publish(policy('api', 1), 0);
    await eventually(() => listener.version('api') === 1, 'the policy came back');
    await source.close();
    await expect(source.list()).rejects.toThrow('Expected an open policy source, got one that is closed.');
    expect(listener.troubles).toEqual([]);
  });

  it('can be closed before it was used', async () => {
    await natsPolicySource({ nats: 'nats://127.0.0.1:1' }).close();
  });
});
