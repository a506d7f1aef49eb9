/** The work, unless `signal` aborts first: then `onAbort` is awaited before the reason is thrown. */
export async function raceAbort<T>(work: Promise<T>, signal: AbortSignal, onAbort: () => Promise<void> | void): Promise<T> {
  let abort!: () => void;
  const aborted = new Promise<'aborted'>((resolve) => (abort = () => resolve('aborted')));
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    const result = await Promise.race([work.then((value) => ({ value })), aborted]);
    if (result !== 'aborted') return result.value;
    work.catch(() => undefined);
    await onAbort();
    throw signal.reason;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
