// Speaks with usher through the official TypeScript clients.
//
//   node converse.mjs '{"v1": FOLDER, "v2": FOLDER, "cases": [...]}'
//
// Each case names a client (v1 or v2), a revision, and a command or a URL. For each
// one line of JSON is printed when the lists may change ({"event":"listening"}), the
// name of a server that was added then is read, and one line is printed at the end.
// Whatever fails is in "error".
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const plan = JSON.parse(process.argv[2]);
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const load = (folder, path) => {
  const resolve = createRequire(join(folder, 'package.json')).resolve;
  return import(pathToFileURL(resolve(path)));
};
process.stdin.on('close', () => process.exit(0));
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// Both generations under one face: make(case) returns a client and a transport.
async function first() {
  const sdk = '@modelcontextprotocol/sdk';
  const { Client } = await load(plan.v1, `${sdk}/client/index.js`);
  const { StdioClientTransport } = await load(plan.v1, `${sdk}/client/stdio.js`);
  const { StreamableHTTPClientTransport } = await load(plan.v1, `${sdk}/client/streamableHttp.js`);
  const types = await load(plan.v1, `${sdk}/types.js`);
  return (c, answer, changed) => {
    const client = new Client({ name: 'v1', version: '1' }, { capabilities: { elicitation: {} } });
    client.setRequestHandler(types.ElicitRequestSchema, answer);
    client.setNotificationHandler(types.ToolListChangedNotificationSchema, changed);
    const transport = c.url ? new StreamableHTTPClientTransport(new URL(c.url)) : new StdioClientTransport({ ...c.command, stderr: 'ignore' });
    // It always offers its newest revision: what it says is changed on its way.
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
      if (message.method === 'initialize') message.params.protocolVersion = c.version;
      return send(message, options);
    };
    let negotiated;
    const set = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = (v) => { negotiated = v; set?.(v); };
    return { client, transport, version: () => negotiated };
  };
}

async function second() {
  const { Client, StreamableHTTPClientTransport } = await load(plan.v2, '@modelcontextprotocol/client');
  const { StdioClientTransport } = await load(plan.v2, '@modelcontextprotocol/client/stdio');
  return (c, answer, changed) => {
    const modern = c.version >= '2026';
    const client = new Client({ name: 'v2', version: '1' }, {
      capabilities: { elicitation: {} },
      ...(modern ? {} : { supportedProtocolVersions: [c.version] }),
      versionNegotiation: { mode: c.auto ? 'auto' : modern ? { pin: c.version } : 'legacy' },
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: changed } },
    });
    client.setRequestHandler('elicitation/create', answer);
    const transport = c.url ? new StreamableHTTPClientTransport(new URL(c.url)) : new StdioClientTransport({ ...c.command, stderr: 'ignore' });
    return { client, transport, version: () => client.getNegotiatedProtocolVersion() };
  };
}

async function converse(c, make, seen) {
  let heard = () => {};
  const change = () => new Promise((resolve) => { heard = resolve; });
  const { client, transport, version } = make(c, async (request) => {
    seen.asked.push(request.params.message);
    return { action: 'accept', content: { name: 'Grace' } };
  }, () => heard());
  await client.connect(transport);
  try {
    seen.version = version();
    seen.tools = (await client.listTools()).tools.map((t) => t.name);
    for (const server of c.servers) {
      seen.echoed.push((await client.callTool({ name: `${server}__echo`, arguments: { n: 9007199254740991 } })).content[0].text);
      seen.prompts.push((await client.getPrompt({ name: `${server}__greet`, arguments: { who: 'x' } })).messages[0].content.text);
      if (c.asks) seen.answers.push((await client.callTool({ name: `${server}__ask`, arguments: { message: `from ${server}` } })).content[0].text);
      const failed = await client.callTool({ name: `${server}__fail`, arguments: {} });
      seen.failed.push(failed.isError === true);
    }
    for (const r of (await client.listResources()).resources) {
      seen.resources.push((await client.readResource({ uri: r.uri })).contents[0].text);
    }
    // A client drops reports that come in one piece with the answer, so that a call
    // may have to take a while for them to be seen.
    for (let ms = 4; seen.progress === 0 && ms < 3000; ms *= 20) {
      await client.callTool({ name: `${c.servers[0]}__slow`, arguments: { ms, steps: 4 } }, ...(c.sdk === 'v1' ? [undefined] : []), { onprogress: () => { seen.progress++; } });
    }
    // What servers tell late may come first; the new server is told in the end.
    let told = change();
    say({ event: 'listening' });
    const added = (await lines.next()).value;
    do {
      await told;
      told = change();
      seen.after = (await client.listTools()).tools.map((t) => t.name);
    } while (!seen.after.includes(`${added}__echo`));
  } finally {
    await client.close();
  }
}

const makers = { v1: await first(), v2: await second() };
for (const c of plan.cases) {
  const seen = { event: 'done', progress: 0, echoed: [], prompts: [], asked: [], answers: [], failed: [], resources: [] };
  try {
    await converse(c, makers[c.sdk], seen);
  } catch (error) {
    seen.error = String(error?.stack ?? error);
  }
  say(seen);
}
process.exit(0);
