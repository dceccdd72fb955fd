export interface AssembledScript {
  readonly name: string;
  readonly sha1: string;
  readonly source: string;
}

export const generatedFile: URL;
export const entryFiles: readonly string[];

export function assembleScript(
  file: string,
  options?: {
    /** Included piece → the piece to take instead, both without `.lua`. */
    replace?: Readonly<Record<string, string>>;
    directory?: URL;
  },
): AssembledScript;

export function generateModule(directory?: URL): string;
