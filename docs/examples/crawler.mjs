// A crawler that may run in many processes: together they ask each site no more than 5 times a second, wait when a site
// says that it has had enough, and stay within one site.
//
//   REDIS_URL=redis://127.0.0.1:6379 node docs/examples/crawler.mjs https://example.org/
import { createLimiter } from 'headgate';
import { limitedFetch } from 'headgate/outbound';

const [start] = process.argv.slice(2);
if (!URL.canParse(start)) {
  console.error('Usage: node docs/examples/crawler.mjs <url>');
  process.exit(1);
}

const limiter = await createLimiter({
  policies: [{ name: 'site', ceiling: { rate: 5, burst: 2 } }],
  redis: process.env.REDIS_URL,
});

// The key is the origin unless you say otherwise: each site has a bucket of its own.
const politeFetch = limitedFetch(limiter, { policy: 'site', maxWaitMs: 60_000 });

const { origin: site, href: home } = new URL(start);
const seen = new Set([home]);

/** Fetches a page and, at the same time, all that it leads to: the limiter decides when each of them is sent. */
async function crawl(url) {
  const response = await politeFetch(url);
  console.log(response.status, url);
  if (!response.ok) return;
  const page = await response.text();
  await Promise.all(newLinks(page, url).map(crawl));
}

/** The pages of this site that `page` leads to and that nobody has asked for yet. */
function newLinks(page, base) {
  const found = [];
  for (const [, target] of page.matchAll(/href="([^"#]+)"/g)) {
    if (!URL.canParse(target, base)) continue;
    const { origin, href } = new URL(target, base);
    if (origin !== site || seen.has(href)) continue;
    seen.add(href);
    found.push(href);
  }
  return found;
}

await crawl(home);
await limiter.close();
