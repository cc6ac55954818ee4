import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

async function host(frames) {
  const child = spawn(process.execPath, [fileURLToPath(new URL("program.js", import.meta.url))], { env: { ...process.env, DAYBOOK_PROTOCOL: "1" } });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const log = [];
  child.stderr.on("data", (text) => log.push(String(text)));
  const seen = [];
  for (const frame of frames) {
    if (frame) child.stdin.write(`${JSON.stringify(frame)}\n`);
    else seen.push(JSON.parse((await lines.next()).value));
  }
  const [code] = await once(child, "exit");
  return { seen, code, log: log.join("") };
}

test("a program describes itself and exits", async () => {
  const { seen, code, log } = await host([{ type: "describe", protocol: 1 }, null, null]);
  assert.deepEqual(seen[0], { type: "hello", protocol: 1, kit: "typescript/0.1.0" });
  const { type, name, version, servers, critical, summary } = seen[1];
  assert.deepEqual({ type, name, version, servers, critical, summary }, {
    type: "description", name: "adder", version: "2", servers: ["s"], critical: [], summary: "Adds.",
  });
  assert.equal(code, 0);
  assert.equal(log, "this line goes to stderr\n");
});

test("a program runs its steps when the host says so", async () => {
  const start = { type: "start", protocol: 1, session: "x", agent: "adder", version: "2", input: { a: 1, b: 2 }, replay: 0 };
  const { seen, code, log } = await host([
    start, null, null, { type: "run", ordinal: 1 }, null, { type: "result", ordinal: 1, ok: 3 }, null,
  ]);
  const [, effect, performed, end] = seen;
  assert.deepEqual({ ...effect, at: undefined }, {
    type: "effect", ordinal: 1, kind: "step", name: "add", arguments: [1, 2], at: undefined,
  });
  assert.match(effect.at, /program\.js:\d+$/);
  assert.deepEqual(performed, { type: "performed", ordinal: 1, ok: 3 });
  assert.deepEqual(end, { type: "end", result: 3 });
  assert.equal(code, 0);
  assert.match(log, /and this one/);
});
