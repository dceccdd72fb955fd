// Asks a server for something over many connections, in a process of its own.
import autocannon from 'autocannon';
import { serve } from '../harness/children.mjs';

// `perSecond` left out: as fast as it answers.
serve(async ({ port, connections, seconds, perSecond }) => {
  const url = `http://127.0.0.1:${port}`;
  const result = await autocannon({
    url,
    connections,
    duration: seconds,
    ...(perSecond && { overallRate: perSecond }),
  });
  return {
    perSecond: result.requests.average,
    p50: result.latency.p50,
    p99: result.latency.p99,
    non2xx: result.non2xx,
    errors: result.errors,
  };
});
