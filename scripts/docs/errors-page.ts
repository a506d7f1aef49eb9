import { faultCatalogue, faultEntry } from '../../core/errors.ts';
import type { FaultCode } from '../../core/errors.ts';
import { rejectCatalogue } from '../../core/record.ts';
import { topicErrorCatalogue } from '../../core/topic-errors.ts';
import { code, page, table } from './markdown.ts';

export function errorsPage(): string {
  const faults = (Object.keys(faultCatalogue) as FaultCode[]).map((name) => {
    const { kind, credential, meaning, next } = faultEntry(name);
    return [code(name), credential === true ? `${kind}, on resume only` : kind, meaning, next];
  });
  const rejects = Object.entries(rejectCatalogue).map(([name, meaning]) => [code(name), meaning]);
  const ofTopics = Object.entries(topicErrorCatalogue).map(([name, { meaning, next }]) => [code(name), meaning, next]);
  return page(
    'core/errors.ts, core/record.ts and core/topic-errors.ts',
    `# Errors

Three things can go wrong, and they are kept apart: the environment fails (a fault), the destination refuses one record for good
(a reject), or plan and target are wrong (a refusal: exit status 2, every problem listed, nothing created).

## Faults

\`retry\` is tried again with a growing wait, and the plan turns \`blocked\` when it lasts. \`stop\` turns the plan \`blocked\` at
once; it looks again slowly, and at once on \`resume\`. Faults of credentials are tried again on \`resume\` only, because repeated
wrong logins lock accounts. Nothing is acknowledged and nothing is dead-lettered because of a fault.

${table(['Code', 'Kind', 'Meaning', 'What next'], faults)}

## Rejects

The record goes to the dead-letter subject with this code; the others of its batch are written.

${table(['Code', 'Meaning'], rejects)}

## Topics

What \`replay-stream topic\` and the library answer instead of what was asked: see [topics.md](../topics.md).

${table(['Code', 'Meaning', 'What next'], ofTopics)}
`,
  );
}
