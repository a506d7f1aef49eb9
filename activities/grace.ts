/** How long a write or an ACK may go on after a cancellation before it is aborted, milliseconds. */
const graceMs = 3_000;

/** Aborts some time after the cancellation, so that what is in flight may finish and be settled. */
export function graceSignal(signal: AbortSignal): AbortSignal & { readonly clear: () => void } {
  const controller = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = (): void => {
    timer = setTimeout(() => controller.abort(signal.reason), graceMs);
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  const clear = (): void => {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  };
  return Object.assign(controller.signal, { clear });
}
