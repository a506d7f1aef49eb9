/** Aborts on Ctrl-C or SIGTERM. A second one does not wait for what is being wound up. */
export function stopOnSignals(process: NodeJS.Process): AbortSignal {
  const stop = new AbortController();
  for (const [signal, status] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    process.on(signal, () => {
      if (stop.signal.aborted) process.exit(status);
      stop.abort();
    });
  }
  return stop.signal;
}
