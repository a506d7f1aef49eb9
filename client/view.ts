import type { Progress } from '../core/progress.ts';
import { approvalText, problemText, progressLine, progressText } from './render.ts';
import type { Terminal } from './terminal.ts';

/** Shows a running replay on standard error. */
export interface View {
  show(progress: Progress): void;
  /** A line that stays. */
  say(text: string): void;
  /** Nothing is drawn until `release`: a question is on the screen. */
  hold(): void;
  release(): void;
  close(): void;
}

/** Between two lines about the same state, milliseconds, where nobody watches. */
const plainEveryMs = 10_000;
const eraseLine = '\r\u001b[2K';

export function createView(terminal: Terminal): View {
  return terminal.interactive ? liveView(terminal) : plainView(terminal);
}

/** One line, drawn again in place. */
function liveView(terminal: Terminal): View {
  let line = '';
  let problem: string | null = null;
  let held = false;
  const redraw = (): void => {
    if (!held) terminal.draw(`${eraseLine}${line}`);
  };
  const say = (text: string): void => {
    if (!held) terminal.draw(eraseLine);
    terminal.err(text);
    redraw();
  };
  return {
    say,
    show(progress) {
      line = progressLine(progress, terminal.columns());
      const text = noteOf(progress);
      const isNew = problemKey(progress) !== problem;
      problem = problemKey(progress);
      if (text !== null && isNew && !held) say(text);
      else redraw();
    },
    hold() {
      terminal.draw(eraseLine);
      held = true;
    },
    // The next progress draws the line: the question may still end its own.
    release() {
      held = false;
    },
    close() {
      if (!held) terminal.draw(eraseLine);
      held = true;
    },
  };
}

/** A line when something changed, and now and then. */
function plainView(terminal: Terminal): View {
  let shown: { readonly key: string; readonly atMs: number } | null = null;
  return {
    show(progress) {
      const now = Date.now();
      const key = `${progress.state} ${problemKey(progress)}`;
      if (shown?.key === key && now - shown.atMs < plainEveryMs) return;
      const changed = shown?.key !== key;
      shown = { key, atMs: now };
      terminal.err(progressText(progress));
      const note = noteOf(progress);
      if (changed && note !== null) terminal.err(note);
    },
    say: (text) => terminal.err(text),
    hold: () => undefined,
    release: () => undefined,
    close: () => undefined,
  };
}

/** What a person should read: why it is blocked, or what it would do once approved. */
function noteOf({ problem, approval }: Progress): string | null {
  if (problem !== null) return problemText(problem);
  return approval == null ? null : approvalText(approval);
}

function problemKey({ problem, approval }: Progress): string | null {
  if (problem !== null) return `${problem.code} ${problem.since}`;
  return approval?.fingerprint ?? null;
}
