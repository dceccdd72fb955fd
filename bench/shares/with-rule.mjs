import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const ALLOTMENT = at('../../src/ceiling/allotment.ts');

/**
 * `headgate/simulation`, made anew with another rule in the place of the allotment, for which the production code has no
 * seam. The rule itself may import the real one.
 */
export async function simulationWith(rule) {
  const replacement = at(`rules/${rule}.mjs`);
  if (!existsSync(replacement)) throw new Error(`Expected --rule to be a file of bench/shares/rules, got ${rule}.`);
  const bundle = await rolldown({
    input: at('../../src/simulation/index.ts'),
    platform: 'node',
    external: /^@/,
    plugins: [
      {
        name: 'rule',
        async resolveId(specifier, importer) {
          if (importer === undefined || importer === replacement) return null;
          const resolved = await this.resolve(specifier, importer, { skipSelf: true });
          return resolved?.id === ALLOTMENT ? replacement : resolved;
        },
      },
    ],
  });
  const { output } = await bundle.generate({ codeSplitting: false });
  return import(`data:text/javascript,${encodeURIComponent(output[0].code)}`);
}
