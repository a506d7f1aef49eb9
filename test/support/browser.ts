import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { chromium, type Browser } from 'playwright-core';
import { atFileEnd } from './file-end.ts';

const names = ['chromium', 'chromium-browser', 'google-chrome', 'chrome'];

/** A headless Chromium: that of REPLAY_TEST_CHROMIUM, else the one on PATH. Ended with the test file. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = process.env['REPLAY_TEST_CHROMIUM'] ?? (await onPath());
  if (executablePath === null) {
    throw new Error(
      `The test of Temporal's UI needs Chromium: install it (Debian: apt-get install chromium), or name it in REPLAY_TEST_CHROMIUM. Looked for: ${names.join(', ')}.`,
    );
  }
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
  atFileEnd(() => browser.close());
  return browser;
}

async function onPath(): Promise<string | null> {
  for (const name of names) {
    const found = await promisify(execFile)('sh', ['-c', 'command -v "$0"', name]).catch(() => null);
    if (found !== null) return found.stdout.trim();
  }
  return null;
}
