/** The process of one instance: what it does, it is told by its environment. */
import { runLoad } from './load.js';
import { type LoadSettings, type ReplaySettings, SETTINGS_VARIABLE } from './protocol.js';
import { runReplay } from './replay-instance.js';

const settings = JSON.parse(process.env[SETTINGS_VARIABLE] ?? 'null') as LoadSettings | ReplaySettings | null;
if (!settings) throw new Error(`Expected ${SETTINGS_VARIABLE} in the environment, got none: \`npm run demo\` sets it.`);
await (settings.task === 'load' ? runLoad(settings) : runReplay(settings));
