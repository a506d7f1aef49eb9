#!/usr/bin/env node
import { CommanderError } from 'commander';
import { act } from './act.ts';
import { exitStatus, type ExitStatus } from './exit.ts';
import { failureExit, failureText } from './failure.ts';
import { parseCommandLine } from './parse.ts';
import { processTerminal, type Terminal } from './terminal.ts';

/** The command `replay-stream`: reads the command line (parse.ts), does what it says (act.ts), leaves with its exit status. */
async function main(words: readonly string[], terminal: Terminal): Promise<ExitStatus> {
  try {
    const output = { out: (text: string) => terminal.out(text.trimEnd()), err: (text: string) => terminal.err(text.trimEnd()) };
    return await act(parseCommandLine(words, output), terminal);
  } catch (error) {
    if (error instanceof CommanderError) return exitStatus(isAskedFor(error) ? 'done' : 'refused');
    terminal.err(failureText(error, process.env['REPLAY_LOG_LEVEL']));
    return failureExit(error);
  }
}

/** Help or version, rather than wrong usage. */
function isAskedFor({ exitCode }: CommanderError): boolean {
  return exitCode === 0;
}

// A reader that went away (`| head`) is no fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(exitStatus('done'));
});

process.exitCode = await main(process.argv.slice(2), processTerminal(process));
