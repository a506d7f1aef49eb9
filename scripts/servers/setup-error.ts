/** A server could not be had, started or reached. The message says what to do; it is meant for a person's terminal. */
export class ServerSetupError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ServerSetupError';
  }
}

/** Tells a person what takes time; one line, no line break. */
export type Say = (line: string) => void;
