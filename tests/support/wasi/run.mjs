// run.mjs PROGRAM.wasm ARGUMENTS... - runs a program for WASI under node; its status is the program's.
// SPDX-License-Identifier: MIT OR Unlicense
import { readFileSync } from 'node:fs';
import { argv, env, exit } from 'node:process';
import { WASI } from 'node:wasi';

const wasi = new WASI({ version: 'preview1', args: argv.slice(2), env, returnOnExit: true });
const module = new WebAssembly.Module(readFileSync(argv[2]));
exit(wasi.start(new WebAssembly.Instance(module, wasi.getImportObject())));
