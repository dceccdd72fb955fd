// Asks a server for something over many connections, in a process of its own.
import autocannon from 'autocannon';
import { serve } from '../harness/children.mjs';

serve(async ({ port, connections, seconds }) => {
  const result = await autocannon({ url: `http://127.0.0.1:${port}`, connections, duration: seconds });
  return {
    perSecond: result.requests.average,
    p50: result.latency.p50,
    p99: result.latency.p99,
    non2xx: result.non2xx,
    errors: result.errors,
  };
});
