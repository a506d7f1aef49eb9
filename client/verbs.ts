import { InvalidArgumentError, type Command } from 'commander';
import { groupDigits } from '../core/problems.ts';
import type { Invocation } from './parse.ts';
import type { ReplayName } from './which.ts';

/** What the definitions of verbs share. */

export type Found = (invocation: Invocation) => void;

export interface Example {
  readonly command: string;
  readonly does: string;
}

const examples = new WeakMap<Command, readonly Example[]>();

export function examplesOf(command: Command): readonly Example[] {
  return examples.get(command) ?? [];
}

export function withExamples(command: Command, list: readonly Example[]): void {
  examples.set(command, list);
}

/** All of them, with those below them. */
export function verbsBelow(command: Command): Command[] {
  return command.commands.flatMap((verb) => [verb, ...verbsBelow(verb)]);
}

/** `schedule create`; empty for the main form. */
export function pathOf(command: Command): string {
  if (command.parent === null) return '';
  return `${pathOf(command.parent)} ${command.name()}`.trim();
}

export function controlVerb(program: Command, name: string, summary: string): Command {
  return program
    .command(name)
    .summary(summary)
    .usage('(ID | STREAM DURABLE) [options]')
    .argument('<name...>', 'workflow id, or stream and durable consumer')
    .option('--json', 'one JSON object');
}

export function nameOf(verb: Command, words: readonly string[]): ReplayName {
  const [first, second, ...rest] = words;
  if (first === undefined || rest.length > 0) return verb.error('error: expected an ID, or STREAM DURABLE');
  return second === undefined ? [first] : [first, second];
}

export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Expected a whole number from ${groupDigits(min)} to ${groupDigits(max)}`);
  };
}
