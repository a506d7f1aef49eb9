import { constants } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { formatProblems } from '../../core/problems.ts';
import { readSettings } from '../../platform/settings.ts';
import { bad, doubtful, good, type Check } from './check.ts';

const nodeMajorMin = 20;
const freeBytesLow = 1_073_741_824;

/** What a worker started in this shell would find: Node, settings, roots. Makes nothing. */
export async function checkMachine(): Promise<Check[]> {
  const settings = readSettings(process.env);
  if (!settings.ok)
    return [
      checkNode(),
      bad('settings', formatProblems(settings.problems), 'Mend these variables: docs/reference/settings.md'),
    ];
  const { dataRoot, reportRoot, targetsFolder } = settings.value;
  return [
    checkNode(),
    await checkRoot('data root', dataRoot, 'REPLAY_DATA_ROOT'),
    await checkRoot('report root', reportRoot, 'REPLAY_REPORT_ROOT'),
    await checkTargets(targetsFolder),
  ];
}

function checkNode(): Check {
  const { node } = process.versions;
  if (Number(node.split('.')[0]) >= nodeMajorMin) return good('node', node);
  return bad('node', `${node} is too old`, `Install Node ${nodeMajorMin} or newer.`);
}

async function checkRoot(name: string, path: string, variable: string): Promise<Check> {
  const there = await isDirectory(path);
  if (there === false) return bad(name, `${path} is not a directory`, `Move it away, or set ${variable}.`);
  const place = there === null ? await nearest(path) : path;
  try {
    await access(place, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return bad(name, `${place} is not writable`, `Give the user of the worker the permission, or set ${variable}.`);
  }
  const { bavail, bsize } = await statfs(place);
  if (bavail * bsize < freeBytesLow)
    return doubtful(
      name,
      `${path}: only ${Math.floor((bavail * bsize) / 1_048_576)} MiB are left`,
      'Make room before a large replay.',
    );
  return good(name, there === null ? `${path} is made when it is needed` : path);
}

async function checkTargets(path: string): Promise<Check> {
  const there = await isDirectory(path);
  if (there === false) return bad('targets', `${path} is not a directory`, 'Move it away, or set REPLAY_TARGETS.');
  return good('targets', there === null ? `${path} is not there: requests bring their targets along` : path);
}

/** null: nothing is there. */
async function isDirectory(path: string): Promise<boolean | null> {
  return await stat(path).then(
    (found) => found.isDirectory(),
    () => null,
  );
}

async function nearest(path: string): Promise<string> {
  let at = path;
  while ((await isDirectory(at)) === null && dirname(at) !== at) at = dirname(at);
  return at;
}
