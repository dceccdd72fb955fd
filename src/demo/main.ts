#!/usr/bin/env node
import { main } from './cli.js';

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  // Not 1: that says that the bound was broken, and nothing has been shown of it.
  process.stderr.write(`The demo could not be run: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 3;
}
