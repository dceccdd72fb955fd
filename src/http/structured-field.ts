/** Largest integer a structured field can carry (RFC 9651, section 3.3.1): 15 digits. */
const MOST = 999_999_999_999_999;

/** Values of a parameter: an integer, a string, bytes. What is `undefined` is left out. */
export type Parameters = Readonly<Record<string, number | string | Uint8Array | undefined>>;

/**
 * One member of a structured-field list (RFC 9651): a value and its parameters, such as `"api";q=100;w=60`.
 *
 * Integers are cut to the 15 digits that the format has. Strings have to be printable ASCII, which names of policies are.
 *
 * @param gap what stands after each `;`: nothing, as RFC 9651 writes it, or the one space that it allows to be read
 */
export function listMember(value: number | string, parameters: Parameters, gap: '' | ' ' = ''): string {
  let text = bare(value);
  for (const name of Object.keys(parameters)) {
    const parameter = parameters[name];
    if (parameter !== undefined) text += `;${gap}${name}=${bare(parameter)}`;
  }
  return text;
}

function bare(value: number | string | Uint8Array): string {
  if (typeof value === 'number') return String(Math.min(MOST, Math.max(0, value)));
  if (typeof value === 'string') return `"${isPlain(value) ? value : value.replace(/["\\]/g, '\\$&')}"`;
  return `:${btoa(String.fromCharCode(...value))}:`;
}

/** Whether nothing in it has to be escaped, as in nearly all names; asked for every field of every response. */
function isPlain(text: string): boolean {
  return !text.includes('"') && !text.includes('\\');
}
