// Runs of ten durable steps on Restate: its server, one service with its TypeScript SDK, and HTTP requests to its ingress.
//
//   node restate_runs.mjs SECONDS FOLDER MODULES AT_ONCE...
//
// Prints a JSON line with the runs per second for each AT_ONCE. All ports are on loopback.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { pathToFileURL } from "node:url";

const [seconds, folder, modules, ...atOnce] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${modules}/`));
const restate = await import(pathToFileURL(require.resolve("@restatedev/restate-sdk")));

const STEPS = 10;
const OUTCOME = "x".repeat(300);
const READY_WITHIN_MS = 60_000;
const GONE_WITHIN_MS = 10_000;

const freePort = () =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });

const ten = restate.service({
  name: "ten",
  handlers: {
    run: async (context) => {
      for (let step = 0; step < STEPS; step += 1) await context.run(`step${step}`, () => OUTCOME);
      return "done";
    },
  },
});

const [servicePort, ingress, admin, fabric] = [await freePort(), await freePort(), await freePort(), await freePort()];
await restate.endpoint().bind(ten).listen(servicePort);

const binary = require.resolve(`@restatedev/restate-server-linux-${process.arch}/bin/restate-server`);
const server = spawn(binary, ["--base-dir", folder], {
  stdio: "ignore",
  env: {
    ...process.env,
    RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
    RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
    RESTATE_BIND_ADDRESS: `127.0.0.1:${fabric}`,
    RESTATE_ADVERTISED_ADDRESS: `http://127.0.0.1:${fabric}`,
    RESTATE_DISABLE_TELEMETRY: "true",
  },
});

const post = (url, body) =>
  fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

const until = async (attempt) => {
  const deadline = Date.now() + READY_WITHIN_MS;
  for (;;) {
    const answer = await attempt().catch(() => undefined);
    if (answer?.ok) return;
    if (Date.now() > deadline) throw new Error(`Restate is not ready: ${answer && (await answer.text())}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
};

const run = async () => {
  const answer = await post(`http://127.0.0.1:${ingress}/ten/run`, null);
  if (!answer.ok) throw new Error(`a run failed: ${await answer.text()}`);
  await answer.arrayBuffer();
};

try {
  await until(() => post(`http://127.0.0.1:${admin}/deployments`, { uri: `http://127.0.0.1:${servicePort}` }));
  await until(() => post(`http://127.0.0.1:${ingress}/ten/run`, null));
  for (const text of atOnce) {
    const began = performance.now();
    const over = () => performance.now() - began > Number(seconds) * 1000;
    let done = 0;
    const worker = async () => {
      while (!over()) {
        await run();
        done += 1;
      }
    };
    await Promise.all(Array.from({ length: Number(text) }, worker));
    const rate = (done * 1000) / (performance.now() - began);
    console.log(JSON.stringify({ what: "Restate", at_once: Number(text), per_second: rate }));
  }
} finally {
  // Wait for the server's exit: the caller then removes its folder.
  if (server.exitCode === null && server.signalCode === null) {
    const gone = new Promise((resolve) => server.once("exit", resolve));
    server.kill("SIGTERM");
    setTimeout(() => server.kill("SIGKILL"), GONE_WITHIN_MS);
    await gone;
  }
}
process.exit(0);
