/** Where a command reads and writes: results go to standard output, everything else to standard error. */
export interface Terminal {
  /** A person sits there who can be asked. */
  readonly interactive: boolean;
  /** Width of standard error in cells. */
  columns(): number;
  /** One line, or several. */
  out(text: string): void;
  err(text: string): void;
  /** Without a line break: for a line that is drawn again. */
  draw(text: string): void;
}

const columnsWhenUnknown = 80;

export function processTerminal(process: NodeJS.Process): Terminal {
  const { stdin, stdout, stderr } = process;
  return {
    interactive: stdin.isTTY === true && stderr.isTTY === true,
    columns: () => stderr.columns || columnsWhenUnknown,
    out: (text) => void stdout.write(`${text}\n`),
    err: (text) => void stderr.write(`${text}\n`),
    draw: (text) => void stderr.write(text),
  };
}

export function outJson(terminal: Terminal, value: unknown): void {
  terminal.out(JSON.stringify(value, null, 2));
}
