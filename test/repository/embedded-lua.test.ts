import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { assembleScript, entryFiles, generatedFile, generateModule } from '../../scripts/embed-lua.mjs';
import { entriesBelow } from './source-tree.js';

describe('the generated module', () => {
  it('is what `npm run embed-lua` makes of lua/ now', () => {
    expect(readFileSync(generatedFile, 'utf8')).toBe(generateModule());
  });

  it('contains every entry file once there are Lua files', () => {
    const luaFiles = entriesBelow('lua').map(({ path }) => path.replace('lua/', ''));
    if (luaFiles.length > 0) expect(luaFiles).toEqual(expect.arrayContaining([...entryFiles]));
  });
});

describe('assembleScript', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'headgate-lua-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  function assemble(files: Record<string, string>, replace: Record<string, string> = {}) {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    return assembleScript('lease.lua', { directory: pathToFileURL(`${folder}/`), replace });
  }

  it('puts each piece where it is first included, once, pieces of pieces too', () => {
    const { name, source, sha1 } = assemble({
      'lease.lua': '-- lease\n--- @include "clock"\n--- @include "bucket"\nreturn now\n',
      'clock.lua': "local now = redis.call('TIME')\n",
      'bucket.lua': '--- @include "clock"\nlocal bucket = now\n',
    });

    expect(name).toBe('lease');
    expect(source).toBe("-- lease\nlocal now = redis.call('TIME')\n\nlocal bucket = now\nreturn now\n");
    expect(sha1).toBe(createHash('sha1').update(source).digest('hex'));
  });

  it('replaces a piece wherever it is included', () => {
    const { source } = assemble(
      {
        'lease.lua': '--- @include "bucket"\n--- @include "clock"\n',
        'bucket.lua': '--- @include "clock"\n',
        'clock.lua': 'TIME',
        'clock-from-argument.lua': 'ARGV',
      },
      { clock: 'clock-from-argument' },
    );

    expect(source).toContain('ARGV');
    expect(source).not.toContain('TIME');
  });

  it('refuses a replacement that replaces nothing', () => {
    expect(() => assemble({ 'lease.lua': 'return 1\n' }, { clock: 'other' })).toThrow('no `--- @include "clock"`');
  });

  it('names the file that includes a piece which is not there', () => {
    expect(() => assemble({ 'lease.lua': '--- @include "clok"\n' })).toThrow('lua/lease.lua includes "clok"');
  });

  it('takes no misspelt include for a comment', () => {
    expect(() => assemble({ 'lease.lua': "-- @include 'clock'\n" })).toThrow('Expected `--- @include "name"`');
  });

  it('is shipped without lines of comment, under the name of what is left', () => {
    writeFileSync(join(folder, 'lease.lua'), '-- lease\n\nlocal a = 1 -- one\n  -- two\nreturn "--" .. a\n');
    const source = 'local a = 1 -- one\nreturn "--" .. a\n';
    const typescript = generateModule(pathToFileURL(`${folder}/`));

    expect(typescript).toContain(`source: \`${source}\``);
    expect(typescript).toContain(createHash('sha1').update(source).digest('hex'));
    writeFileSync(join(folder, 'lease.lua'), 'local a = [[\n-- no comment\n]]\n');
    expect(() => generateModule(pathToFileURL(`${folder}/`))).toThrow('no long brackets');
  });

  it('survives being embedded in a template literal', () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is what must not be taken for a placeholder.
    const source = 'local s = "a\\n${b}`"\n';
    writeFileSync(join(folder, 'lease.lua'), source);
    const typescript = generateModule(pathToFileURL(`${folder}/`));
    const literal = typescript.slice(typescript.indexOf('source: `') + 'source: '.length, typescript.indexOf(',\n};'));

    expect(new Function(`return ${literal}`)()).toBe(source);
  });
});
