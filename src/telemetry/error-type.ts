/** How far to follow `cause`: enough for our own wrapping, and an end to circles. */
const DEEPEST_CAUSE = 4;

/** Names that Redis clients give to an error reply of the server; its first word is the server's own code. */
const REPLY_ERROR = /^(ReplyError|ErrorReply|SimpleError)$/;
const REPLY_CODE = /^[A-Z][A-Z0-9_]{1,31}(?= |$)/;
const CODE = /^[A-Z][A-Z0-9_]{1,63}$/;
const CLASS_NAME = /^[A-Za-z_$][\w$]{0,63}$/;

/**
 * What `error.type` says of an error: the code of its innermost cause, the server's code of an error reply, or its class;
 * `_OTHER` (the convention's word) where none of them is fit. The message is never used: servers quote arguments in it,
 * and so keys.
 */
export function errorType(error: unknown): string {
  const innermost = innermostCause(error);
  const type = ownType(innermost);
  // A plain `Error` says nothing; what wraps it says more.
  return type === 'Error' ? ownType(error) : type;
}

function ownType(error: unknown): string {
  if (!(error instanceof Error)) return '_OTHER';
  const replyCode = REPLY_ERROR.test(error.name) ? REPLY_CODE.exec(error.message)?.[0] : undefined;
  if (replyCode !== undefined) return replyCode;
  const code: unknown = 'code' in error ? error.code : undefined;
  if (typeof code === 'string' && CODE.test(code)) return code;
  return CLASS_NAME.test(error.name) ? error.name : '_OTHER';
}

function innermostCause(error: unknown): unknown {
  let innermost = error;
  for (let depth = 0; depth < DEEPEST_CAUSE; depth++) {
    if (!(innermost instanceof Error && innermost.cause instanceof Error)) break;
    innermost = innermost.cause;
  }
  return innermost;
}
