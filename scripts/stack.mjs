// Starts a local stack and a browser on its page, for the scripts that use both.
//
// DAYBOOK is the program, FOLDER an empty folder for its journal, PLAYWRIGHT the folder that playwright-core and axe-core
// are installed in, CHROMIUM the browser.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const { DAYBOOK, FOLDER, PLAYWRIGHT, CHROMIUM } = process.env;
export const require = createRequire(join(PLAYWRIGHT, "package.json"));
/** Deadline of any wait, on a busy machine. */
export const DEADLINE_MS = 30_000;

let child = null;
process.on("exit", () => child?.kill("SIGKILL"));

/** Starts the stack and waits until it is ready; its address. */
export async function start(listen = "127.0.0.1:0", environment = {}, options = []) {
  child = spawn(DAYBOOK, ["--data", join(FOLDER, "data"), "dev", "--listen", listen, ...options], { cwd: FOLDER, env: environment, stdio: ["ignore", "pipe", "ignore"] });
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith("ready ")) return line.slice("ready ".length);
  }
  throw new Error("the stack ended before it was ready");
}

/** Ends it: as a power cut would with SIGKILL. */
export async function stop(signal = "SIGTERM") {
  const ended = new Promise((resolve) => { child.once("exit", resolve); });
  child.kill(signal);
  await ended;
  child = null;
}

/** Asks the stack as one of AWS's own clients would. */
export async function aws(endpoint, target, body) {
  const headers = { "content-type": "application/x-amz-json-1.1", "x-amz-target": target };
  const response = await fetch(endpoint, { method: "POST", body: JSON.stringify(body), headers });
  return response.json();
}

/** Puts the trigger event; the event's id is the session's. */
export async function trigger(endpoint, detail) {
  const entry = { Source: "manual-trigger", DetailType: "execute-agent", Detail: JSON.stringify(detail) };
  return (await aws(endpoint, "AWSEvents.PutEvents", { Entries: [entry] })).Entries[0].EventId;
}

/** Waits until the session has ended or waits itself; its status. */
export async function settled(endpoint, id) {
  return until(async () => {
    const response = await fetch(`${endpoint}/api/sessions/${id}`);
    const status = response.ok ? (await response.json()).session.status : "INITIATED";
    return ["INITIATED", "RUNNING"].includes(status) ? null : status;
  }, `session ${id} neither ends nor waits`);
}

/** Asks until there is an answer. */
export async function until(ask, problem) {
  const ends = Date.now() + DEADLINE_MS;
  while (Date.now() < ends) {
    const answer = await ask();
    if (answer) return answer;
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
  throw new Error(problem);
}

export function browse() {
  return require("playwright-core").chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-lcd-text"] });
}
