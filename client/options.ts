import { InvalidArgumentError, type Command } from 'commander';
import { groupDigits } from '../core/problems.ts';

/** What the definitions of all verbs share. */

export interface Example {
  readonly command: string;
  readonly does: string;
}

const examples = new WeakMap<Command, readonly Example[]>();

export function examplesOf(command: Command): readonly Example[] {
  return examples.get(command) ?? [];
}

export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Expected a whole number from ${groupDigits(min)} to ${groupDigits(max)}`);
  };
}

export function withExamples(command: Command, list: readonly Example[]): void {
  examples.set(command, list);
  command.addHelpText('after', `\nExamples:\n${list.map(({ command: line, does }) => `  # ${does}\n  ${line}`).join('\n')}`);
}
