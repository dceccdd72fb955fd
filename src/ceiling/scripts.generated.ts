// Generated from lua/ by scripts/embed-lua.mjs. Do not edit: change the Lua and run `npm run embed-lua`.

/** A Lua script as Redis runs it. */
export interface EmbeddedScript {
  readonly name: string;
  /** What EVALSHA is called with: the SHA-1 of `source`, in hex. */
  readonly sha1: string;
  readonly source: string;
}

export const embeddedScripts: readonly EmbeddedScript[] = [];
