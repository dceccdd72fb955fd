import { linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { type Production, productionFrom } from './production.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** What a limiter with a store of its own is made of; adaptors are only loaded where they are asked for. */
const FOLDERS = [
  '.',
  'algorithm',
  'ceiling',
  'ceiling/refill',
  'lease',
  'limiter',
  'mark',
  'pace',
  'policy',
  'seat',
  'telemetry',
];

/** One change of one place in the source. */
export interface Edit {
  /** From src. */
  readonly file: string;
  /** The text to be replaced; there exactly once. */
  readonly find: string;
  readonly replace: string;
}

/** Copies of the product with a rule taken out, each a module graph of its own. */
export class Mutants {
  readonly #folder: string;
  readonly #compiled = new Map<string, string>();
  #made = 0;

  constructor() {
    const cache = join(ROOT, 'node_modules/.cache');
    mkdirSync(cache, { recursive: true });
    this.#folder = mkdtempSync(join(cache, 'headgate-mutants-'));
    writeFileSync(join(this.#folder, 'package.json'), '{ "type": "module" }');
    for (const folder of FOLDERS) {
      for (const name of readdirSync(join(ROOT, 'src', folder))) {
        if (!name.endsWith('.ts')) continue;
        const file = join(folder, name);
        this.#compiled.set(file, this.#write(join('original', file), compile(read(file))));
      }
    }
  }

  /** How often each edit's text is in the source: once, or the mutation has no meaning any more. */
  occurrences({ file, find }: Edit): number {
    return read(file).split(find).length - 1;
  }

  /** The product with `edits` made. */
  async make(edits: readonly Edit[]): Promise<Production> {
    const name = `mutant-${this.#made++}`;
    const edited = new Map<string, string>();
    for (const { file, find, replace } of edits) {
      edited.set(
        file,
        (edited.get(file) ?? read(file)).replace(find, () => replace),
      );
    }
    for (const [file, compiled] of this.#compiled) {
      const source = edited.get(file);
      if (source === undefined) this.#link(compiled, join(name, file));
      else this.#write(join(name, file), compile(source));
    }
    return productionFrom(join(this.#folder, name));
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #write(file: string, text: string): string {
    const path = join(this.#folder, file).replace(/\.ts$/, '.js');
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return path;
  }

  /** The same text under another name is another module. */
  #link(from: string, file: string): void {
    const path = join(this.#folder, file).replace(/\.ts$/, '.js');
    mkdirSync(dirname(path), { recursive: true });
    linkSync(from, path);
  }
}

function read(file: string): string {
  return readFileSync(join(ROOT, 'src', file), 'utf8');
}

function compile(text: string): string {
  const compilerOptions = { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true };
  return ts.transpileModule(text, { compilerOptions }).outputText;
}
