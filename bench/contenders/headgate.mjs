// headgate in every state a decision can find it in, in the shape of contenders/memory.mjs.
import { createLimiter } from 'headgate';

const HOUR_US = 3_600_000_000;
const AMPLE = { rate: 1e9, burst: 1e9 };
/** Gains a token an hour: after the first, denied. */
const TIGHT = { rate: 1, burst: 1, per: '1h' };
const LEASE = { durationMs: 600_000 };

/**
 * A ceiling that answers in the same turn, and grants once what no wallet runs low of while it is measured: what is left is
 * the decision with a live lease. It must not answer within the call: a limiter then calls once more to tell what it spent
 * at once, and returns what it has no use for. `denies`: it grants nothing, and says that asking again is useless.
 */
function generousCeiling({ denies = false } = {}) {
  const reply = (call) => ({
    status: 'granted',
    seq: call.seq,
    now: Math.floor((performance.timeOrigin + performance.now()) * 1_000),
    era: 'bench-era-000000',
    version: call.version,
    burst: call.burst,
    rateNum: call.rateNum,
    rateDen: call.rateDen,
    granted: !denies && call.need + call.want > 0 ? 4e15 : 0,
    level: 0,
    horizon: 0,
    next: denies ? HOUR_US : 0,
    retry: denies ? HOUR_US : 0,
    giveBack: false,
    conflict: false,
    incarnation: 1,
    certainUntil: 0,
  });
  return {
    ready: true,
    lease: (calls) => calls.map((call) => Promise.resolve(reply(call))),
    heartbeat: async () => 1,
    close: async () => {},
  };
}

/**
 * The process's own clock, without the timers that look for unused keys: a limiter drops a key that is not asked for a
 * second, and its lease after half of one, so that of very many keys, frozen in between, most would be made anew.
 */
const sleepless = {
  now: performance.now.bind(performance),
  wallNow: Date.now,
  after(delayMs, task) {
    if (delayMs > 0) return { cancel() {} };
    const immediate = setImmediate(task);
    return { cancel: () => clearImmediate(immediate) };
  },
};

async function policy(terms, { keys = [], ceiling, ...options } = {}) {
  const limiter = await createLimiter({
    policies: [{ name: 'api', lease: LEASE, ...terms }],
    telemetry: false,
    maxKeys: Math.max(100_000, keys.length * 2),
    time: sleepless,
    ...(ceiling && { ceiling }),
    ...options,
  });
  return limiter.policy('api');
}

const BOTH = { local: AMPLE, ceiling: AMPLE };

/** Both tiers, the lease granted by the stub above. */
const leased = (keys, options) => policy(BOTH, { keys, ceiling: generousCeiling(), ...options });

export const headgate = {
  'hg-both': {
    label: 'headgate tryAcquire, both tiers, live lease',
    make: async (_, keys) => {
      const api = await leased(keys);
      return { decide: (key) => api.tryAcquire(key) };
    },
  },
  'hg-embedded': {
    label: 'the same, leasing from the ceiling in this process (renewals included)',
    make: async (_, keys) => {
      const api = await policy(BOTH, { keys, time: undefined });
      return { decide: (key) => api.tryAcquire(key) };
    },
  },
  'hg-ceiling': {
    label: 'headgate tryAcquire, ceiling alone, live lease',
    make: async (_, keys) => {
      const api = await policy({ ceiling: AMPLE }, { keys, ceiling: generousCeiling() });
      return { decide: (key) => api.tryAcquire(key) };
    },
  },
  'hg-local': {
    label: 'headgate tryAcquire, local tier alone',
    make: async (_, keys) => {
      const api = await policy({ local: AMPLE }, { keys });
      return { decide: (key) => api.tryAcquire(key) };
    },
  },
  'hg-denied-local': {
    label: 'headgate tryAcquire, denied by the local tier',
    denies: true,
    make: async (_, keys) => {
      const api = await policy({ local: TIGHT, ceiling: AMPLE }, { keys, ceiling: generousCeiling() });
      return { decide: (key) => api.tryAcquire(key) };
    },
  },
  'hg-denied-ceiling': {
    label: 'headgate tryAcquire, denied by the ceiling (blocked)',
    denies: true,
    make: async (_, keys) => {
      const api = await policy(BOTH, { keys, ceiling: generousCeiling({ denies: true }) });
      return { decide: (key) => api.tryAcquire(key) };
    },
  },
  'hg-decide': {
    label: 'headgate decide, both tiers, live lease',
    make: async (_, keys) => {
      const api = await leased(keys);
      return { decide: (key) => api.decide(key).allowed };
    },
  },
  'hg-acquire': {
    label: 'headgate acquire, awaited, live lease',
    make: async (_, keys) => {
      const api = await leased(keys);
      // Who waits for tokens is lent them for as long as a call may take.
      return { async: true, introduce: (key) => api.tryAcquire(key), decide: (key) => api.acquire(key) };
    },
  },
  'hg-handle': {
    label: 'headgate key handle, tryAcquire, both tiers, live lease',
    make: async (_, keys) => {
      const api = await leased(keys);
      const handle = api.key(keys[0]);
      return { decide: () => handle.tryAcquire() };
    },
  },
  'hg-otel': {
    label: 'headgate tryAcquire, OpenTelemetry SDK registered, no span recording',
    make: async (_, keys) => {
      await registerTelemetry();
      const api = await leased(keys, { telemetry: true });
      return { decide: (key) => api.tryAcquire(key) };
    },
  },
  'hg-otel-denied': {
    label: 'headgate tryAcquire, denied, OpenTelemetry SDK registered, no span recording',
    denies: true,
    make: async (_, keys) => {
      await registerTelemetry();
      const api = await policy({ local: TIGHT, ceiling: AMPLE }, { keys, ceiling: generousCeiling(), telemetry: true });
      return { decide: (key) => api.tryAcquire(key) };
    },
  },
};

/** The SDK as an application registers it: spans processed and dropped, metrics collected every ten seconds. */
async function registerTelemetry() {
  const { NodeTracerProvider, BatchSpanProcessor, InMemorySpanExporter } = await import(
    '@opentelemetry/sdk-trace-node'
  );
  const { MeterProvider, PeriodicExportingMetricReader, InMemoryMetricExporter } = await import(
    '@opentelemetry/sdk-metrics'
  );
  const { metrics } = await import('@opentelemetry/api');
  new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new InMemorySpanExporter())] }).register();
  const reader = new PeriodicExportingMetricReader({
    exporter: new InMemoryMetricExporter(1),
    exportIntervalMillis: 10_000,
  });
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
}

/** A limiter whose keys all hold a live lease of the stub above, to be filled and emptied. */
export async function leasedLimiter(keyCount) {
  const limiter = await createLimiter({
    policies: [{ name: 'api', local: { rate: 1_000, burst: 1_000 }, ceiling: AMPLE }],
    ceiling: generousCeiling(),
    telemetry: false,
    maxKeys: Math.max(100_000, keyCount * 2),
  });
  const api = limiter.policy('api');
  return { limiter, decide: (key) => api.tryAcquire(key) };
}
