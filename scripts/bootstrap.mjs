/**
 * Runs one of the project's scripts in a fresh clone: `node scripts/bootstrap.mjs scripts/test.ts [arguments]`.
 * Plain Node without dependencies, since it runs before there are any: checks the Node version, installs the packages of
 * package-lock.json when they are missing or others than the lock file names, then hands over to the script under tsx.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const minimumNode = [20, 19];
const installMinutesMax = 15;
const lockPollMs = 300;
const parentPollMs = 500;
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const lockFile = join(root, '.cache', 'install.lock');

checkNode();
const [script, ...scriptArguments] = process.argv.slice(2);
if (script === undefined) fail('Say which script to run: node scripts/bootstrap.mjs scripts/test.ts [arguments]', 2);
if (!isInstalled()) await installOnce();
runScript(script, scriptArguments);

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > minimumNode[0] || (major === minimumNode[0] && minor >= minimumNode[1])) return;
  fail(
    `Node ${process.versions.node} is too old: install Node ${minimumNode.join('.')} or newer, then run the same command again.`,
  );
}

/**
 * npm writes node_modules/.package-lock.json as the very last step of an install, so it says what truly stands there,
 * whoever installed it. Packages for other platforms are optional and may be absent.
 */
function isInstalled() {
  const wanted = readPackages(join(root, 'package-lock.json'));
  if (wanted === undefined) fail('package-lock.json is missing or not JSON: restore it from version control.');
  const present = readPackages(join(root, 'node_modules', '.package-lock.json'));
  if (present === undefined) return false;
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '') return true;
    const found = present[path];
    if (found === undefined) return entry.optional === true;
    return found.version === entry.version && found.integrity === entry.integrity;
  });
}

function readPackages(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).packages;
  } catch {
    return undefined;
  }
}

/** Two commands started at once in a fresh clone must not install over each other: one installs, the other waits. */
async function installOnce() {
  mkdirSync(dirname(lockFile), { recursive: true });
  const deadline = Date.now() + installMinutesMax * 60_000;
  while (!takeLock()) {
    if (Date.now() > deadline) {
      fail(
        `Another start has been installing packages for ${installMinutesMax} minutes. If none is running, delete ${lockFile}.`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, lockPollMs));
  }
  process.on('exit', releaseLock);
  if (!isInstalled()) install();
  releaseLock();
  process.off('exit', releaseLock);
}

function takeLock() {
  try {
    writeFileSync(lockFile, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') fail(`${lockFile} cannot be written (${error.code}): make the folder writable.`);
  }
  removeDeadLock();
  return false;
}

/** A lock left by a killed start is moved away, not deleted: a move succeeds for one of several waiters only. */
function removeDeadLock() {
  const holder = readLock(lockFile);
  if (holder === undefined || holder === '' || isAlive(Number(holder))) return;
  const aside = `${lockFile}.${process.pid}`;
  try {
    renameSync(lockFile, aside);
  } catch {
    return;
  }
  if (readLock(aside) !== holder) renameSync(aside, lockFile);
  else rmSync(aside, { force: true });
}

function readLock(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

function releaseLock() {
  if (readLock(lockFile) === String(process.pid)) rmSync(lockFile, { force: true });
}

/** Without install scripts: the packages that have some work without them, and no foreign code runs at install. */
function install() {
  process.stderr.write('Installing packages (npm ci), this takes about half a minute ...\n');
  const parameters = ['ci', '--include=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const npmCli = process.env.npm_execpath?.endsWith('.js') ? process.env.npm_execpath : undefined;
  const result = spawnSync(
    npmCli === undefined ? 'npm' : process.execPath,
    npmCli === undefined ? parameters : [npmCli, ...parameters],
    {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      encoding: 'utf8',
      shell: npmCli === undefined && process.platform === 'win32',
      timeout: installMinutesMax * 60_000,
    },
  );
  if (result.status === 0) return;
  const lastLines = `${result.stdout ?? ''}\n${result.stderr ?? ''}`.trim().split('\n').slice(-20).join('\n');
  const cause = result.error === undefined ? `exit status ${result.status ?? result.signal}` : result.error.message;
  fail(
    `${lastLines}\nnpm ci failed (${cause}), so nothing was run. Check that the package registry can be reached and that the disk has ` +
      'room, then run the same command again.',
  );
}

function runScript(file, parameters) {
  const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), file, ...parameters], {
    cwd: root,
    stdio: 'inherit',
  });
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT']) {
    process.on(signal, () => {
      // Ctrl-C in a terminal reaches the script by itself; a second one would read as impatience.
      if (signal === 'SIGINT' && process.stdin.isTTY) return;
      child.kill(signal);
    });
  }
  stopWithNpm(child);
  child.on('error', (error) => fail(`Node could not start ${file}: ${error.message}`));
  child.on('exit', (status, signal) => process.exit(signal === null ? status : 128 + constants.signals[signal]));
}

/** A signal to npm ends npm and its shell, but not what the shell runs: we notice that our parent is gone. */
function stopWithNpm(child) {
  if (process.env.npm_lifecycle_event === undefined) return;
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    child.kill('SIGTERM');
  }, parentPollMs);
}

function fail(sentence, status = 1) {
  process.stderr.write(`${sentence}\n`);
  process.exit(status);
}
