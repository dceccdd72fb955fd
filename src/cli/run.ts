import { UsageError } from '../terminal/flags.js';
import { VERSION } from '../version.js';
import { type Command, EXIT, type Streams } from './command.js';
import { replayCommand } from './replay-command.js';
import { simulateCommand } from './simulate-command.js';

const COMMANDS: Readonly<Record<string, Command>> = { simulate: simulateCommand, replay: replayCommand };

const USAGE = `Usage: headgate <command> [options]

${Object.entries(COMMANDS)
  .map(([name, { summary }]) => `  ${name.padEnd(10)} ${summary}`)
  .join('\n')}

  headgate <command> --help   the options of a command
  headgate --version          the version of this package

Exit codes: 0 all is well; 1 it ran and found a window over its bound; 2 the command line, or a
file it names, is not what was expected; 3 it could not be run to its end.
`;

/** Runs the command line `args`; answers the exit code. */
export async function run(args: readonly string[], streams: Streams): Promise<number> {
  const { stdout, stderr } = streams;
  // Whoever reads may have seen enough (`headgate … | head`).
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  const [name, ...rest] = args;
  try {
    if (name === '--help' || name === '-h') return show(USAGE, stdout);
    if (name === '--version') return show(`${VERSION}\n`, stdout);
    const command = name !== undefined && Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
    if (!command) {
      const got = name === undefined ? 'none' : JSON.stringify(name);
      throw new UsageError(`Expected a command (${Object.keys(COMMANDS).join(', ')}), got ${got}. See headgate --help`);
    }
    if (rest.includes('--help') || rest.includes('-h')) return show(command.usage, stdout);
    return await command.run(rest, streams);
  } catch (error) {
    const text = error instanceof UsageError ? error.message : String((error as Error).stack ?? error);
    stderr.write(`headgate: ${text}\n`);
    return error instanceof UsageError ? EXIT.usage : EXIT.failed;
  }
}

function show(text: string, stream: NodeJS.WriteStream): number {
  stream.write(text);
  return EXIT.ok;
}
