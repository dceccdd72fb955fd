// Turns the Lua sources in lua/ into a TypeScript module, so that the published package needs no file access at run
// time and survives bundlers. `npm run build` runs this; test/repository/generated-lua.test.ts fails when it was not run.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const luaDirectory = new URL('../lua/', import.meta.url);
export const generatedFile = new URL('../src/ceiling/scripts.generated.ts', import.meta.url);

/** The scripts that are sent to Redis. Every other file in lua/ is a piece that these include. */
export const entryFiles = ['lease.lua', 'heartbeat.lua', 'seats.lua', 'pace.lua', 'marks.lua'];

/**
 * One Lua script with its `--- @include "piece"` lines expanded, each piece once, where it is first named.
 * `replace` swaps pieces by name: tests run the shipped body on another clock with
 * `assembleScript('lease.lua', { replace: { clock: 'clock-from-argument' } })`.
 */
export function assembleScript(file, { replace = {}, directory = luaDirectory } = {}) {
  const included = new Set();
  const replaced = new Set();

  function expand(name) {
    const lines = readFileSync(new URL(name, directory), 'utf8').split('\n');
    return lines.map((line) => expandLine(line, name)).join('\n');
  }

  function expandLine(line, includingFile) {
    const include = /^--- @include "([a-z0-9-]+)"\s*$/.exec(line);
    if (include === null) {
      // A directive that is misspelt would otherwise pass as an ordinary Lua comment, and its piece be missing.
      if (/^\s*--+\s*@include/.test(line)) {
        throw new Error(`Expected \`--- @include "name"\` in lua/${includingFile}, got \`${line}\``);
      }
      return line;
    }
    const asked = include[1];
    const piece = Object.hasOwn(replace, asked) ? replace[asked] : asked;
    if (piece !== asked) replaced.add(asked);
    if (included.has(piece)) return '';
    included.add(piece);
    const pieceFile = `${piece}.lua`;
    if (!existsSync(new URL(pieceFile, directory))) {
      throw new Error(`lua/${includingFile} includes "${piece}", but there is no lua/${pieceFile}`);
    }
    return expand(pieceFile).trimEnd();
  }

  const source = expand(file);
  for (const name of Object.keys(replace)) {
    // A test variant that replaces nothing would be the shipped script under another name.
    if (!replaced.has(name)) throw new Error(`lua/${file} has no \`--- @include "${name}"\` to replace`);
  }
  return scriptOf(file.replace(/\.lua$/, ''), source);
}

/** The text of the generated module. */
export function generateModule(directory = luaDirectory) {
  const scripts = entryFiles
    .filter((file) => existsSync(new URL(file, directory)))
    .map((file) => withoutComments(assembleScript(file, { directory })));
  const constants = scripts.map(
    ({ name, sha1, source }) =>
      `export const ${constantName(name)}: EmbeddedScript = {\n  name: '${name}',\n  sha1: '${sha1}',\n  source: \`${escapeTemplate(source)}\`,\n};\n`,
  );
  const list = scripts.map(({ name }) => constantName(name)).join(', ');
  return [
    '// Generated from lua/ by scripts/embed-lua.mjs. Do not edit: change the Lua and run `npm run embed-lua`.\n',
    '/** A Lua script as Redis runs it. */\nexport interface EmbeddedScript {\n  readonly name: string;\n' +
      '  /** What EVALSHA is called with: the SHA-1 of `source`, in hex. */\n  readonly sha1: string;\n' +
      '  readonly source: string;\n}\n',
    ...constants,
    `export const embeddedScripts: readonly EmbeddedScript[] = [${list}];\n`,
  ].join('\n');
}

/** The script without its lines of comment and its indents: they are half of what each process loads and sends. */
function withoutComments({ name, source }) {
  // A line that looks like a comment may be part of a long string.
  if (/\[=*\[/.test(source))
    throw new Error(`Expected no long brackets in ${name}.lua: comments could not be told apart.`);
  const lines = source.split('\n').filter((line) => !/^\s*(--.*)?$/.test(line));
  return scriptOf(name, `${lines.map((line) => line.trimStart()).join('\n')}\n`);
}

function scriptOf(name, source) {
  return { name, sha1: createHash('sha1').update(source).digest('hex'), source };
}

function constantName(scriptName) {
  return `${scriptName.replace(/-([a-z0-9])/g, (_, letter) => letter.toUpperCase())}Script`;
}

function escapeTemplate(text) {
  return text.replace(/\\|`|\$\{/g, '\\$&');
}

/** Writes only what changed, so that watching compilers and a second build have nothing to redo. */
function writeIfChanged(file, text) {
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return;
  mkdirSync(new URL('.', file), { recursive: true });
  writeFileSync(file, text);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeIfChanged(generatedFile, generateModule());
