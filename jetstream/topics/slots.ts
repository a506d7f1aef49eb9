/** So many at a time, the others wait in their order. */
export class Slots {
  readonly #atOnce: number;
  readonly #waitingMax: number;
  readonly #waiting: (() => void)[] = [];
  #taken = 0;

  constructor(atOnce: number, waitingMax: number) {
    this.#atOnce = atOnce;
    this.#waitingMax = waitingMax;
  }

  /** null when too many wait already. */
  async run<T>(act: () => Promise<T>): Promise<T | null> {
    if (this.#taken === this.#atOnce) {
      if (this.#waiting.length >= this.#waitingMax) return null;
      // Whoever ends hands its own slot over.
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else this.#taken++;
    try {
      return await act();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#taken--;
      else next();
    }
  }
}
