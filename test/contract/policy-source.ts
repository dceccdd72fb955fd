import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InvalidPolicyError, PolicyConflictError, PolicySourceError } from '../../src/errors.js';
import type { PolicyDocument } from '../../src/policy/policy.js';
import type { PolicySource } from '../../src/policy/policy-source.js';
import { eventually } from '../support/eventually.js';
import { RecordingListener } from './policy-source-listener.js';

/** A store of policies, empty at first, that several sources look at. */
export interface PolicyStore {
  source(): PolicySource;
  dispose(): Promise<void>;
}

export function policy(name: string, version: number, rate = 1): PolicyDocument {
  return { name, version, ceiling: { rate, burst: 1 } };
}

/** What every writable `PolicySource` must do. Each test gets a store of its own. */
export function describePolicySource(kind: string, createStore: () => Promise<PolicyStore>): void {
  describe(`PolicySource: ${kind}`, () => {
    let store: PolicyStore;
    let listener: RecordingListener;

    beforeEach(async () => {
      store = await createStore();
      listener = new RecordingListener();
    });
    afterEach(() => store.dispose());

    it('has delivered the present state as snapshot updates when watch resolves', async () => {
      const source = store.source();
      await source.publish(policy('api', 1), 0);
      await source.publish(policy('a.b_c-D', 1), 0);
      await source.publish(policy('api', 2), 1);
      await store.source().watch(listener);
      expect(listener.newest('api')).toMatchObject({ document: policy('api', 2), via: 'snapshot' });
      expect(listener.newest('a.b_c-D')).toMatchObject({ document: policy('a.b_c-D', 1), via: 'snapshot' });
      expect(listener.updates.map(({ publishedAt }) => publishedAt)).toEqual([undefined, undefined]);
      expect(listener.troubles).toEqual([]);
    });

    it('has nothing to deliver where nothing is stored, and lists nothing', async () => {
      const source = store.source();
      await source.watch(listener);
      expect(listener.updates).toEqual([]);
      expect(await source.list()).toEqual([]);
    });

    it('delivers to every watcher what is published, by whomever, with the trace it came from', async () => {
      const watching = store.source();
      await watching.watch(listener);
      const trace = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'a=1,b=2' };
      await store.source().publish(policy('api', 1), 0, trace);
      await eventually(() => listener.newest('api')?.via === 'watch', 'another source’s policy arrived');
      await watching.publish(policy('api', 2), 1);
      await eventually(() => listener.version('api') === 2, 'its own policy arrived');
      expect(listener.first('api', 1)).toMatchObject({ document: policy('api', 1), trace });
      expect(listener.first('api', 2)?.trace).toBeUndefined();
    });

    it('lists what is stored', async () => {
      const source = store.source();
      await source.publish(policy('b', 7), 0);
      await source.publish(policy('a', 3), 0);
      const listed = await store.source().list();
      expect(listed.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual([policy('a', 3), policy('b', 7)]);
    });

    it('refuses to publish over a version that is not the expected one, and leaves that alone', async () => {
      const source = store.source();
      await source.publish(policy('api', 5), 0);
      for (const expected of [0, 4, 6]) {
        const refused = source.publish(policy('api', 9), expected);
        await expect(refused).rejects.toThrow(PolicyConflictError);
        await expect(refused).rejects.toThrow(
          `Expected policy "api" to be ${expected === 0 ? 'not stored' : `stored in version ${expected}`}, ` +
            'found it stored in version 5: read it again and retry.',
        );
      }
      await expect(source.publish(policy('new', 9), 4)).rejects.toThrow(
        'Expected policy "new" to be stored in version 4, found it not stored: read it again and retry.',
      );
      expect(await source.list()).toEqual([policy('api', 5)]);
    });

    it('lets exactly one of several win that publish at once', async () => {
      const rates = [1, 2, 3, 4, 5];
      const sources = rates.map(() => store.source());
      const outcomes = await Promise.allSettled(
        sources.map((source, index) => source.publish(policy('api', 1, rates[index]), 0)),
      );
      const lost = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
      expect(lost).toHaveLength(rates.length - 1);
      for (const error of lost) expect(error).toBeInstanceOf(PolicyConflictError);
      const winner = rates[outcomes.findIndex(({ status }) => status === 'fulfilled')];
      expect(await store.source().list()).toEqual([policy('api', 1, winner)]);
    });

    it('stores nothing that is not a policy', async () => {
      const source = store.source();
      await expect(source.publish({ name: 'api', version: 1 }, 0)).rejects.toThrow(InvalidPolicyError);
      expect(await source.list()).toEqual([]);
    });

    it('delivers nothing after close, and can’t be used any more', async () => {
      const source = store.source();
      await source.watch(listener);
      await source.close();
      const other = store.source();
      const otherListener = new RecordingListener();
      // Where closing the last watcher closes the store itself, there is nothing left to publish to.
      await other
        .watch(otherListener)
        .then(() => other.publish(policy('api', 1), 0))
        .then(() => eventually(() => otherListener.version('api') === 1, 'an open source got it'))
        .catch((error) => expect(error).toBeInstanceOf(PolicySourceError));
      expect(listener.updates).toEqual([]);
      await expect(source.publish(policy('api', 2), 1)).rejects.toThrow(PolicySourceError);
      await expect(source.list()).rejects.toThrow(PolicySourceError);
    });
  });
}
