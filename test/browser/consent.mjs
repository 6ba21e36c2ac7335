// A person logs in everywhere: one consent per row, one tab per gesture, and rows turn
// green without a reload.
import { drive } from './drive.mjs';

await drive(async ({ context, page, params, assert, axe, shot }) => {
  const tabs = [];
  context.on('page', (p) => tabs.push(p));
  await page.goto(params.link);
  assert.ok(!page.url().includes('once='), 'the one-time link stays in the address bar');
  const loaded = await page.evaluate(() => performance.timeOrigin);
  const row = (name) => page.getByRole('listitem').filter({ has: page.getByText(name, { exact: true }) });

  // The link is good for one browser only.
  const other = await context.browser()?.newContext();
  if (other) {
    const stranger = await other.newPage();
    const answer = await stranger.goto(params.link);
    assert.equal(answer.status(), 403);
    await other.close();
  }

  const looks = async (when) => {
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      for (const [size, width, height] of [['', 900, 760], ['-phone', 375, 812]]) {
        await page.setViewportSize({ width, height });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= width, `${when}: ${wide} pixels wide on ${width}`);
        await axe(page, `${when}, ${colorScheme}${size}`);
        if (when === 'half') await shot(page, `consent${colorScheme === 'dark' ? '-dark' : ''}${size}`);
      }
    }
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 900, height: 760 });
  };

  // consent goes through the pages of the authorization server.
  const consent = async (click, name) => {
    const before = tabs.length;
    const opened = context.waitForEvent('page');
    await click();
    const tab = await opened;
    await row(name).getByText('Open again').waitFor();
    await tab.waitForURL(/\/interaction\//);
    const login = tab.locator('input[name=login]');
    if (await login.count()) {
      await login.fill('ada');
      await tab.locator('input[name=password]').fill('secret');
      await tab.getByRole('button', { name: 'Sign-in' }).click();
    }
    await tab.getByRole('button', { name: 'Continue' }).click();
    await tab.getByRole('heading', { name: 'You are logged in' }).waitFor();
    if (before === 0) await axe(tab, 'the page one ends on');
    await row(name).getByText('connected', { exact: true }).waitFor();
    assert.equal(await row(name).getAttribute('data-phase'), 'connected');
    assert.equal(await row(name).getByRole('link').count(), 0);
    assert.equal(tabs.length, before + 1, `${name}: one gesture opened ${tabs.length - before} tabs`);
    await tab.close();
  };

  await row(params.refused).getByText('failed').waitFor();
  const [first, second, third, ...rest] = params.servers;
  await consent(() => row(first).getByRole('link').click(), first);
  await consent(() => row(second).getByRole('link').dblclick(), second);
  await looks('half');
  // With the keyboard alone: the button on top leads to the next one.
  await consent(async () => {
    await page.getByRole('link', { name: `Open the next one: ${third}` }).focus();
    await page.keyboard.press('Enter');
  }, third);
  for (const name of rest) await consent(() => row(name).getByRole('link').click(), name);

  await page.getByText('Everything has ended').waitFor();
  assert.equal(await page.locator('[data-phase=connected]').count(), params.servers.length);
  assert.ok(await page.locator('#lost').isHidden(), 'the page says that usher is lost');
  assert.equal(await page.evaluate(() => performance.timeOrigin), loaded, 'the page was loaded again');
  assert.equal(tabs.length, params.servers.length);
  await looks('done');
});
