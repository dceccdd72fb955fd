/** Says on stderr what is being measured: on one line that is written over where that is a terminal, else a line each. */
export function makeProgress() {
  const start = performance.now();
  return (text) => {
    const seconds = ((performance.now() - start) / 1_000).toFixed(0).padStart(4);
    clearProgress();
    process.stderr.write(`${seconds} s  ${text}${process.stderr.isTTY ? '' : '\n'}`);
  };
}

/** Makes room on the terminal for what is printed. */
export function clearProgress() {
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K');
}
