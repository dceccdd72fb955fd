// A gateway to a language model, which is paid by the token: each tenant may use so many a minute over all instances,
// whatever a request turns out to need. It reserves what a request usually needs, and settles what it has used.
//
//   UPSTREAM_URL=http://127.0.0.1:11434 REDIS_URL=redis://127.0.0.1:6379 node docs/examples/llm-gateway.mjs
import fastify from 'fastify';
import { createLimiter, reserve } from 'headgate';
import { responseTo } from 'headgate/http';

const BURST = 2_000;
const USUAL_ANSWER = 300;

const limiter = await createLimiter({
  policies: [{ name: 'tokens', ceiling: { rate: 10_000, per: '1m', burst: BURST } }],
  redis: process.env.REDIS_URL,
  newStore: 'full', // this Redis is new, and has not lost what it knew
});
const tokens = limiter.policy('tokens');

/** What a request usually comes to. The most it could come to would be kept from the tenant's other requests meanwhile. */
function usualCost({ messages }) {
  const prompt = messages.reduce((length, { content }) => length + content.length, 0) / 4;
  return Math.min(BURST, Math.ceil(prompt) + USUAL_ANSWER);
}

async function complete(body) {
  const response = await fetch(new URL('/v1/chat/completions', process.env.UPSTREAM_URL), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`The model answered ${response.status}.`);
  return await response.json();
}

const app = fastify();

app.post('/v1/chat/completions', async (request, reply) => {
  const tenant = request.headers['x-tenant'] ?? 'unknown';
  const cost = usualCost(request.body);

  const reservation = await reserve(tokens, tenant, { cost, expiresAfterMs: 300_000 });
  if (!reservation.allowed) {
    const ruling = { decision: reservation.decision, policy: tokens.policy, key: tenant, cost };
    const refusal = responseTo([ruling], {}, { wallNow: Date.now(), random: Math.random });
    return reply.code(refusal.status).headers(refusal.headers).send(refusal.body);
  }

  try {
    const answer = await complete(request.body);
    // What it has used beyond the reservation is charged now; the tenant's next requests wait until it is earned.
    reservation.settle(answer.usage.total_tokens);
    return answer;
  } catch (error) {
    reservation.cancel(); // takes effect only where it has not been settled
    return reply.code(502).send({ error: error.message });
  }
});

app.addHook('onClose', () => limiter.close());
process.once('SIGTERM', () => app.close());

console.log(await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' }));
