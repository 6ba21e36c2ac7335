// Logs in to all servers: opens each address that usher prints and hands back where the
// browser would have ended, on usher's standard input. One server in ten is cancelled.
// usage: node drive.mjs USHER
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

const usher = spawn(process.argv[2], ['login', '--all', '--json', '--paste', '--wait', '120s'], { stdio: ['pipe', 'pipe', 'inherit'] })
const ended = { connected: 0, failed: 0, skipped: 0 }
const replies = { accepted: 0, rejected: 0 }
const send = (line) => usher.stdin.write(line + '\n')
let begun = 0

async function consent(login) {
  begun++
  if (begun % 10 === 0) return send(JSON.stringify({ cancel: login.server }))
  const page = await fetch(login.authorize_url, { redirect: 'manual' })
  const back = new URL(page.headers.get('location'))
  if (begun % 2) return send(back.href)
  send(JSON.stringify(Object.fromEntries(back.searchParams)))
}

for await (const text of createInterface({ input: usher.stdout })) {
  const line = JSON.parse(text)
  if (line.type === 'outcome' && line.status === 'pending') consent(line)
  if (line.type === 'event' && line.phase in ended) ended[line.phase]++
  if (line.type === 'input') replies[line.status]++
}
const code = usher.exitCode ?? (await new Promise((done) => usher.on('exit', done)))
console.log(JSON.stringify({ code, ended, replies }))
process.exit(0)
