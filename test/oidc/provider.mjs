// Runs oidc-provider on loopback: node provider.mjs PACKAGE PORT, where PACKAGE is
// the folder of oidc-provider and PORT may be 0. Prints what happens as lines of
// JSON, the first being {"event":"listening","issuer":…}. Ends with its standard
// input, so that it never outlives the test that started it.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, port] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(createRequire(import.meta.url).resolve(folder)));

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
process.stdin.on('close', () => process.exit(0)).resume();

const server = createServer();
await new Promise((ready) => server.listen(Number(port), '127.0.0.1', ready));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  // The MCP server asks about tokens with this client.
  clients: [{
    client_id: 'mcp-server', client_secret: 'mcp-server-secret',
    grant_types: [], response_types: [], redirect_uris: [],
  }],
  cookies: { keys: ['only for tests'] },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  features: {
    deviceFlow: { enabled: true },
    devInteractions: { enabled: true },
    introspection: { enabled: true },
    registration: { enabled: true },
    registrationManagement: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (ctx, resource) => ({
        scope: 'tools:read tools:write', audience: resource, accessTokenFormat: 'opaque', accessTokenTTL: 3600,
      }),
    },
  },
});

const asked = (ctx) => ({
  client: ctx.oidc?.client?.clientId,
  grant: ctx.oidc?.params?.grant_type,
  refresh: ctx.oidc?.params?.refresh_token,
});
provider.on('registration_create.success', (ctx, client) => say({ event: 'registered', client: client.clientId }));
provider.on('registration_delete.success', (ctx, client) => say({ event: 'deregistered', client: client.clientId }));
provider.on('grant.success', (ctx) => say({ event: 'granted', ...asked(ctx) }));
provider.on('grant.error', (ctx, err) => say({ event: 'refused', ...asked(ctx), error: err.error, detail: err.error_detail }));
provider.on('refresh_token.saved', (token) => say({ event: 'issued', client: token.clientId, refresh: token.jti }));
provider.on('server_error', (ctx, err) => say({ event: 'broken', error: String(err.stack) }));

// POST /expire/TOKEN ends an access token before its time and nothing else:
// revoking one ends its whole login here.
const serve = provider.callback();
server.on('request', async (req, res) => {
  const [, route, token] = req.url.split('/');
  if (req.method !== 'POST' || route !== 'expire') return serve(req, res);
  const found = await provider.AccessToken.find(token);
  await found?.destroy();
  return res.writeHead(found ? 204 : 404).end();
});
say({ event: 'listening', issuer });
