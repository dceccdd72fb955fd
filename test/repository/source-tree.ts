import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

export const root = fileURLToPath(new URL('../../', import.meta.url));

const NOT_OURS = new Set(['node_modules', 'dist', 'coverage', '.git']);

export interface Entry {
  /** From the root of the repository, with `/`. */
  path: string;
  isFolder: boolean;
}

/** Every file and folder of ours below `folder`, or nothing where it does not exist. */
export function entriesBelow(folder: string): Entry[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => !NOT_OURS.has(entry.name))
    .flatMap((entry) => {
      const path = folder === '.' ? entry.name : `${folder}/${entry.name}`;
      return entry.isDirectory() ? [{ path, isFolder: true }, ...entriesBelow(path)] : [{ path, isFolder: false }];
    });
}

export function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** A module is named by its path in src without the ending: `lease/wallet`. */
export type Module = string;

/** What each module of src imports from src, in any form: values, types, re-exports, `import()`. */
export function importGraph(): Map<Module, Module[]> {
  const files = entriesBelow('src').filter(({ path, isFolder }) => !isFolder && path.endsWith('.ts'));
  return new Map(files.map(({ path }) => [moduleName(path), relativeImports(path, read(path))]));
}

export function relativeImports(path: string, text: string): Module[] {
  return ts
    .preProcessFile(text, true, true)
    .importedFiles.map(({ fileName }) => fileName)
    .filter((specifier) => specifier.startsWith('.'))
    .map((specifier) => moduleName(join(dirname(path), specifier)));
}

function moduleName(path: string): Module {
  return path.replace(/^src\//, '').replace(/\.[jt]s$/, '');
}
