// What every scene shares: one Chromium with an empty profile, and a watch over it.
// A scene is run as: node SCENE.mjs JSON, where JSON holds the paths of the programs
// and what the test wants to tell the scene.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import assert from 'node:assert/strict';

const params = JSON.parse(process.argv[2]);
const require = createRequire(import.meta.url);
const { chromium } = require(params.playwright);
const axeSource = await readFile(`${params.axe}/axe.min.js`, 'utf8');

const limit = 30_000; // a machine that runs all tests at once is slow

const isHere = (address) => {
  const { protocol, hostname } = new URL(address);
  return !/^(https?|wss?):$/.test(protocol) || ['127.0.0.1', 'localhost', '[::1]'].includes(hostname);
};

// drive runs a scene. Pages of params.foreign are not usher's: what they do is not
// held against it.
export async function drive(scene) {
  const context = await chromium.launchPersistentContext(params.profile, {
    executablePath: params.chromium, headless: true, viewport: { width: 1440, height: 900 },
    colorScheme: 'light', reducedMotion: 'reduce',
    args: [
      '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', '--font-render-hinting=none',
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
    ],
  });
  context.setDefaultTimeout(limit);
  const faults = [];
  const foreign = (address) => (params.foreign ?? []).some((origin) => address?.startsWith(origin));
  context.on('request', (request) => {
    const by = request.isNavigationRequest() ? '' : request.frame()?.url();
    if (!isHere(request.url()) && !foreign(by)) faults.push(`${by || 'a page'} asked ${request.url()}`);
  });
  context.on('console', (message) => {
    if (message.type() === 'error' && !foreign(message.page()?.url())) faults.push(`console: ${message.text()} (${message.location().url})`);
  });
  context.on('weberror', (e) => faults.push(`script: ${e.error().stack}`));
  const page = context.pages()[0] ?? await context.newPage();
  try {
    await scene({ context, page, params, assert, axe, shot, forgive: (pattern) => forgiven.push(pattern) });
  } catch (err) {
    console.error(err.stack ?? err);
    for (const p of context.pages()) console.error(`\n${p.url()}\n${await p.locator('body').innerText().catch(() => '')}`);
    process.exitCode = 1;
  }
  const left = faults.filter((fault) => !forgiven.some((pattern) => pattern.test(fault)));
  for (const fault of left) console.error(`fault: ${fault}`);
  if (left.length) process.exitCode = 1;
  await context.close();
}

// forgiven are faults that a scene brings about on purpose.
const forgiven = [];

// axe looks for what keeps people out. Serious findings fail the scene.
async function axe(page, where) {
  await page.evaluate(axeSource);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  const grave = found.violations.filter((v) => ['serious', 'critical'].includes(v.impact));
  const words = grave.map((v) => `${v.id}: ${v.help}\n${v.nodes.map((n) => `    ${n.html}\n    ${n.failureSummary}`).join('\n')}`);
  assert.equal(grave.length, 0, `${where}: ${words.join('\n')}`);
}

// shot takes a picture. Where the page stands still it goes into the documents.
async function shot(page, name, options = {}) {
  const path = params.pictures ? `${params.pictures}/${name}.png` : undefined;
  await page.screenshot({ path, animations: 'disabled', ...options });
}
