/** A text that stands for keys: the literal parts between its stars, in their order. */
export type Pattern = readonly string[];

/**
 * Reads a key of `overrides`, `allow` or `deny`: one without a star is itself, backslashes and all. In one with stars
 * each stands for any text, none included, but that `\*` is a star and `\\` a backslash.
 *
 * @returns the parts of a pattern; a single one is the key that is meant
 */
export function readPattern(text: string): Pattern {
  if (!text.includes('*')) return [text];
  const parts: string[] = [];
  let part = '';
  for (const [all, escaped] of text.matchAll(/\\([\\*])|./gsu)) {
    if (all !== '*') {
      part += escaped ?? all;
      continue;
    }
    parts.push(part);
    part = '';
  }
  return [...parts, part];
}

/** Whether `key` is one of those a pattern stands for. Looks at each part once, so that no key is costly. */
export function matches(pattern: Pattern, key: string): boolean {
  const [first = '', ...rest] = pattern;
  const last = rest.pop() ?? '';
  if (key.length < first.length + last.length || !key.startsWith(first) || !key.endsWith(last)) return false;
  let at = first.length;
  const end = key.length - last.length;
  for (const part of rest) {
    const found = key.indexOf(part, at);
    at = found + part.length;
    if (found < 0 || at > end) return false;
  }
  return true;
}
