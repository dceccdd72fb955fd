import { lacksCalendar, loadCalendar } from '../lease/window-call.js';
import { everyTerms, isPaced, type Policy } from '../policy/policy.js';
import { lacksMeters, loadMeters } from './local-tier.js';
import type { PacedRoom, PacedRoomParts } from './paced-room.js';

let Room: typeof PacedRoom | undefined;

/** Whether a policy needs code that most limiters do without, and that must be loaded before it comes into force. */
export function lacksCode(policy: Policy): boolean {
  return lacksMeters(policy) || lacksCalendar(policy) || lacksPacing(policy);
}

/** Loads what is lacking for a policy. */
export async function loadCode(policy: Policy): Promise<void> {
  if (lacksMeters(policy)) await loadMeters();
  if (lacksCalendar(policy)) await loadCalendar();
  if (lacksPacing(policy)) Room = (await import('./paced-room.js')).PacedRoom;
}

/** The room for callers whose ceiling is a leaky bucket. It has been loaded. */
export function pacedRoom(parts: PacedRoomParts): PacedRoom {
  return new (Room as typeof PacedRoom)(parts);
}

function lacksPacing(policy: Policy): boolean {
  return !Room && everyTerms(policy).some(isPaced);
}
