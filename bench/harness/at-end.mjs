const tasks = new Set();
let listening = false;

/** Runs `task`, which must not wait for anything, however this process ends, save by SIGKILL; answers how to call it off. */
export function atEnd(task) {
  if (!listening) {
    listening = true;
    process.once('exit', () => {
      for (const each of tasks) each();
    });
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));
  }
  tasks.add(task);
  return () => tasks.delete(task);
}
