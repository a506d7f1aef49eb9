import { relative } from 'node:path';

/** One test file in the JSON that vitest writes. */
export interface TestFile {
  readonly name: string;
  readonly status: string;
  readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
}

export interface Run {
  readonly files: readonly TestFile[];
  readonly exitStatus: number;
  /** Folders of test/ of which at least one test must have run. */
  readonly required: readonly string[];
  readonly allowSkipped: boolean;
  readonly root: string;
}

export interface Verdict {
  /** `N passed, N failed`, with `, N skipped` when skipping is allowed and happened. */
  readonly line: string;
  readonly failed: number;
  /** What is counted as failed besides failed tests, one sentence each. */
  readonly complaints: readonly string[];
}

/** What a run of the tests amounts to. Whatever is wrong counts as at least one failure, so that line and status agree. */
export function judge(run: Run): Verdict {
  const tests = run.files.flatMap((file) => file.assertionResults);
  const passed = tests.filter(({ status }) => status === 'passed').length;
  const failed = tests.filter(({ status }) => status === 'failed').length;
  // Where a hook failed, the tests that it kept from running are that one failure.
  const sound = run.files.filter(({ status }) => status !== 'failed');
  const skipped = (run.allowSkipped ? run.files : sound)
    .flatMap((file) => file.assertionResults)
    .filter(({ status }) => status !== 'passed' && status !== 'failed');
  const complaints = [...brokenFiles(run), ...missingSuites(run)];
  if (!run.allowSkipped) {
    for (const { fullName } of skipped) {
      complaints.push(`Skipped: ${fullName}. Set REPLAY_TEST_ALLOW_SKIPPED=1 if that is meant.`);
    }
  }
  if (passed === 0 && failed === 0 && complaints.length === 0) complaints.push('No test ran.');
  if (run.exitStatus !== 0 && failed === 0 && complaints.length === 0) {
    complaints.push(`vitest ended with status ${run.exitStatus} though no test failed: see the errors above.`);
  }
  const total = failed + complaints.length;
  const tail = run.allowSkipped && skipped.length > 0 ? `, ${skipped.length} skipped` : '';
  return { line: `${passed} passed, ${total} failed${tail}`, failed: total, complaints };
}

/** A file whose import or hooks failed has no failed test of its own. */
function brokenFiles({ files, root }: Run): string[] {
  return files
    .filter((file) => file.status === 'failed' && !file.assertionResults.some(({ status }) => status === 'failed'))
    .map((file) => `${relative(root, file.name)} failed outside its tests: see the errors above.`);
}

function missingSuites({ files, required, root }: Run): string[] {
  const ran = (suite: string) =>
    files.some(
      (file) =>
        relative(root, file.name).startsWith(`test/${suite}/`) &&
        file.assertionResults.some(({ status }) => status === 'passed' || status === 'failed'),
    );
  return required.filter((suite) => !ran(suite)).map((suite) => `No test of the suite ${suite} (test/${suite}) ran.`);
}
