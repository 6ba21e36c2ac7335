// Counts tokens: node tokens.mjs PACKAGE, where PACKAGE is the folder of
// gpt-tokenizer. Reads lines of text and prints, for each, a line with its tokens in
// the vocabularies of today's models and of those before.
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const vocabularies = await Promise.all(['o200k_base', 'cl100k_base']
  .map((name) => import(pathToFileURL(`${process.argv[2]}/esm/encoding/${name}.js`))));
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(vocabularies.map((v) => v.encode(line).length))}\n`);
}
