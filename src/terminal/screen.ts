import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

/** Where a program is watched: lines that stay, and under them a bar that moves, where there is a terminal for it. */
export class Screen {
  readonly #stream: NodeJS.WriteStream;
  readonly #colours: boolean;
  #bar = '';

  constructor(stream: NodeJS.WriteStream, environment: NodeJS.ProcessEnv = process.env) {
    this.#stream = stream;
    this.#colours = stream.isTTY === true && !environment['NO_COLOR'] && environment['TERM'] !== 'dumb';
  }

  style(style: Style, text: string): string {
    return this.#colours ? styleText(style, text) : text;
  }

  /** A line that stays. */
  line(text = ''): void {
    this.#erase();
    this.#stream.write(`${text}\n`);
    this.#draw();
  }

  /** Shows how much of the whole is done; nothing where the output is no terminal. */
  progress(done: number, label: string): void {
    if (!this.#stream.isTTY) return;
    const width = Math.max(10, Math.min(40, this.#stream.columns - label.length - 4));
    const filled = Math.round(Math.min(1, Math.max(0, done)) * width);
    this.#erase();
    this.#bar = `${this.style('cyan', '█'.repeat(filled))}${this.style('dim', '░'.repeat(width - filled))} ${label}`;
    this.#draw();
  }

  /** Takes the bar away. */
  end(): void {
    this.#erase();
    this.#bar = '';
  }

  #erase(): void {
    if (this.#bar) this.#stream.write('\r\u001b[2K');
  }

  #draw(): void {
    if (this.#bar) this.#stream.write(this.#bar);
  }
}

/** 12,345 */
export function count(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** 99.5 % */
export function percent(fraction: number, digits = 1): string {
  return `${(fraction * 100).toFixed(digits)} %`;
}

/** 820 ns, 1.4 µs, 12 ms */
export function duration(nanoseconds: number): string {
  if (nanoseconds < 1_000) return `${nanoseconds.toFixed(0)} ns`;
  if (nanoseconds < 1e6) return `${(nanoseconds / 1e3).toFixed(1)} µs`;
  return `${(nanoseconds / 1e6).toFixed(1)} ms`;
}
