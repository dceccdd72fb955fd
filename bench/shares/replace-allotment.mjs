// A module loader hook: whoever imports the allotment gets another rule, which itself may import the real one.
let replacement = '';

export function initialize(data) {
  replacement = data.replacement;
}

export async function resolve(specifier, context, next) {
  const resolved = await next(specifier, context);
  const isAllotment = resolved.url.endsWith('/ceiling/allotment.js');
  return isAllotment && context.parentURL !== replacement ? { ...resolved, url: replacement } : resolved;
}
