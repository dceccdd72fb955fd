/** Well-known mistakes that can be seen from the requests alone. `docs/reference/warnings.md` has a section for each. */
export const SETUP_WARNINGS = {
  HEADGATE_FORWARDED_FOR_IGNORED:
    'A request came with X-Forwarded-For, but no proxy is trusted: everybody behind that proxy shares one bucket. ' +
    'Tell your framework which proxies to trust, or give `key`.',
  HEADGATE_ANY_PROXY_TRUSTED:
    'Every proxy is trusted, so the client itself can write the address it is limited by. ' +
    'Trust the addresses of your proxies, or their number.',
  HEADGATE_COUNTED_TWICE:
    'A request passed the same policy twice with the same key and was charged twice. ' +
    'Apply a policy in one place, or skip it in one of them.',
  HEADGATE_FULL_IPV6_KEY:
    'A key is a full IPv6 address: whoever has a network of them has as many buckets. ' +
    'Use `addressKey` of headgate/key, or leave `key` out.',
} as const;

export type SetupWarningCode = keyof typeof SETUP_WARNINGS;

/** A mistake in how the limiter is set up. Nothing is refused for it. */
export interface SetupWarning {
  readonly code: SetupWarningCode;
  readonly message: string;
}

/** Tells each kind once. */
export class SetupWarnings {
  readonly #tell: (warning: SetupWarning) => void;
  readonly #told = new Set<SetupWarningCode>();

  constructor(tell: (warning: SetupWarning) => void = emitWarning) {
    this.#tell = tell;
  }

  tell(code: SetupWarningCode): void {
    if (this.#told.has(code)) return;
    this.#told.add(code);
    this.#tell({ code, message: SETUP_WARNINGS[code] });
  }
}

function emitWarning({ code, message }: SetupWarning): void {
  process.emitWarning(message, { type: 'HeadgateWarning', code });
}
