/** Seeded randomness: the same seed gives the same schedule, for ever. */
export interface Random {
  /** A whole number from 0 to below `n`. */
  below(n: number): number;
  /** True once in `n` times. */
  oneIn(n: number): boolean;
}

export function seeded(seed: number): Random {
  let state = Math.imul(seed + 1, 0x9e3779b1) >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (n: number): number => Math.floor(next() * n);
  return { below, oneIn: (n) => below(n) === 0 };
}
