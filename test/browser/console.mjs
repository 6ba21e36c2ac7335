// A person looks after servers on the console.
import { drive } from './drive.mjs';

await drive(async ({ context, page, params, assert, axe, shot, forgive }) => {
  const origin = new URL(params.link).origin;
  const world = (what) => fetch(`${params.world}/${what}`, { method: 'POST' });
  const server = (name) => page.locator(`#side [data-server="${name}"]`);
  const state = (name, want) => page.locator(`#side [data-server="${name}"][data-state="${want}"]`).waitFor();

  // looks checks one page in every look it has.
  const looks = async (name) => {
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      for (const [width, height] of [[1440, 900], [375, 812]]) {
        await page.setViewportSize({ width, height });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= width, `${name}: ${wide} pixels wide on ${width}`);
        if (width === 1440 || colorScheme === 'light') await axe(page, `${name}, ${colorScheme}, ${width}`);
        const tail = `${colorScheme === 'dark' ? '-dark' : ''}${width === 375 ? '-phone' : ''}`;
        if (pictures.has(name + tail)) await shot(page, `console${name === 'overview' ? '' : `-${name}`}${tail}`);
      }
    }
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 1440, height: 900 });
  };
  const pictures = new Set(['overview', 'overview-dark', 'overview-phone', 'pins', 'tool', 'connect']);

  // call fills in the form of a tool that is open and sends it.
  const call = async (fields, sure) => {
    for (const [name, value] of Object.entries(fields)) {
      const field = page.locator(`[data-field="${name}"]`);
      const choice = field.locator('select');
      if (await choice.count()) await choice.selectOption(value);
      else await field.locator('input, textarea').fill(value);
    }
    if (sure) await page.getByLabel('This tool is marked destructive').check();
    await page.getByRole('button', { name: /^Call / }).click();
  };
  const open = (tool) => page.goto(`${origin}/console/tool?${new URLSearchParams(tool)}`);

  // In: with the link, once.
  await page.goto(params.link);
  assert.ok(!page.url().includes('once='), 'the one-time link stays in the address bar');
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  assert.equal(await page.locator('#side [data-server]').count(), 6);

  // Connect all: one consent per click, rows turn green by themselves.
  await page.locator('#connect-all').click();
  await page.waitForURL('**/console/connect');
  const row = (name) => page.locator(`#groups [data-server="${name}"]`);
  for (const [i, name] of params.logins.entries()) {
    const opened = context.waitForEvent('page');
    await row(name).getByRole('link').click();
    const tab = await opened;
    await tab.getByRole('button', { name: /allow/i }).click();
    await tab.getByRole('heading', { name: 'You are logged in' }).waitFor();
    await tab.close();
    await page.locator(`#groups [data-server="${name}"][data-phase="connected"]`).waitFor();
    if (i === 1) await looks('connect');
  }
  await page.getByText('Everything has ended').waitFor();

  // Try a tool, found by what it does.
  await page.getByRole('link', { name: /^Servers/ }).click();
  await server('files').getByRole('link').click();
  await page.getByRole('button', { name: 'Refresh tools' }).click();
  await page.locator('[data-tool="files/read_text"]').waitFor();
  await page.keyboard.press('/');
  await page.locator('#q:focus').waitFor();
  await page.keyboard.type('read a text file', { delay: 20 });
  await page.waitForFunction(() => location.search === '?q=read%20a%20text%20file');
  assert.equal(await page.locator('#q').inputValue(), 'read a text file');
  await page.locator('#found').getByText('tools fit').waitFor();
  await page.locator('[data-tool="files/read_text"] a').click();
  await call({ path: 'hello.txt' });
  await page.locator('#result .content').getByText('hello from the demo').waitFor();
  await state('files', 'connected');
  await looks('tool');

  // A server crashes in the middle of a call, and comes back with the next one.
  await page.goto(`${origin}/console/server?name=flaky`);
  await page.getByRole('button', { name: 'Refresh tools' }).click();
  await state('flaky', 'connected');
  const watcher = await context.newPage();
  await watcher.goto(`${origin}/console/server?name=flaky`);
  await open({ server: 'flaky', name: 'pay' });
  await call({ id: '7', break: 'true' }, true);
  await page.locator('#result [data-run=failed]').waitFor();
  await page.locator('#result').getByText(/outcome (is )?unknown/i).waitFor();
  await page.locator('#side [data-server="flaky"]:not([data-state="connected"])').waitFor();
  await watcher.locator('#server-state').getByText(/^(?!connected)/).waitFor();
  await open({ server: 'flaky', name: 'balance' });
  await call({});
  await page.locator('#result .content').getByText('42 coins left').waitFor();
  await state('flaky', 'connected');
  await watcher.locator('#server-state').getByText('connected', { exact: true }).waitFor();
  await watcher.locator('#history li').nth(2).waitFor();
  await watcher.close();

  // A tool that changes is blocked until its change was looked at.
  for (const [name, fields] of [['notes', { query: 'usher' }], ['tickets', {}]]) {
    await page.goto(`${origin}/console/server?name=${name}`);
    await page.getByRole('button', { name: 'Refresh tools' }).click();
    await page.locator('ul.tools a').first().click();
    await call(fields);
    await page.locator('#result [data-run=done]').waitFor();
  }
  await page.goto(`${origin}/console/server?name=tickets`);
  await world('change');
  await page.getByRole('button', { name: 'Refresh tools' }).click();
  await page.locator('#pins-waiting').waitFor();
  await open({ server: 'tickets', name: 'close' });
  await page.getByText('This tool is not what it was').waitFor();
  await page.goto(`${origin}/`);
  await page.locator('#attention-pins').waitFor();
  await looks('overview');
  await page.getByRole('link', { name: 'Look at the changes' }).click();
  await page.getByText('read all mail').first().waitFor();
  await looks('pins');
  await page.getByRole('button', { name: 'Accept tickets/close' }).click();
  await page.getByText('No tool waits for approval').waitFor();
  await page.locator('#pins-waiting').waitFor({ state: 'detached' });
  await open({ server: 'tickets', name: 'close' });
  await call({ id: '1' });
  await page.locator('#result .content').getByText('closed').waitFor();

  // What was called is listed, without what was said.
  await page.getByRole('link', { name: 'Calls', exact: true }).click();
  await page.getByRole('row', { name: /pay/ }).waitFor();
  assert.ok(!(await page.locator('#main').innerText()).includes('hello.txt'), 'an argument is shown');
  await looks('calls');
  await page.getByRole('link', { name: 'Accounts', exact: true }).click();
  await page.locator('[data-account="notes"][data-login="ok"]').waitFor();
  await looks('accounts');
  await page.goto(`${origin}/console/server?name=flaky`);
  await looks('server');

  // A stranger sees nothing.
  const answer = await fetch(`${origin}/`);
  assert.equal(answer.status, 403);
  assert.ok(!(await answer.text()).includes('flaky'), 'a stranger sees servers');

  // usher ends: the page says so.
  forgive(/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/);
  await world('stop');
  await page.locator('#lost').waitFor();
});
