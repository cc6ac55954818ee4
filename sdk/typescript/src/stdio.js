// Connects an agent to its host: frames on stdin and stdout, one JSON object a line.

import { Console } from "node:console";
import { writeSync } from "node:fs";
import { createInterface } from "node:readline";

import { Context } from "./context.js";
import { parse, stringify } from "./json.js";
import { Program } from "./program.js";

const PROTOCOL = 1;
const KIT = "typescript/0.1.0";

// When the kit is imported, so that what other modules print while they load does not reach the host either.
if (process.env.DAYBOOK_PROTOCOL) keepStdout();

/** Runs the agent for the host that started this process. */
export async function run(agent) {
  let program;
  let isFirst = true;
  const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
  lines.on("line", (line) => {
    const frame = parse(line);
    if (!isFirst) return program.receive(frame);
    isFirst = false;
    send({ type: "hello", protocol: PROTOCOL, kit: KIT });
    if (frame.type === "describe") return describe(agent);
    if (frame.type !== "start") throw new Error(`the first frame is \`${frame.type}\`, not \`start\` or \`describe\``);
    program = new Program(send);
    void program.main(() => agent.call(new Context(program, frame), frame.input)).then(() => process.exit(0));
  });
  // The host is gone.
  lines.on("close", () => process.exit(0));
  if (process.stdin.isTTY) {
    console.error("hint: this is an agent of Daybook; name it in daybook.toml and run `daybook dev`");
  }
}

function describe(agent) {
  send(agent.description());
  process.exit(0);
}

// stdout belongs to the protocol; what the agent prints goes to stderr. A process that the agent starts with an
// inherited stdout is not covered: Node cannot replace a file descriptor.
function keepStdout() {
  globalThis.console = new Console({ stdout: process.stderr, stderr: process.stderr });
  Object.defineProperty(process, "stdout", { get: () => process.stderr });
}

function send(frame) {
  let bytes = Buffer.from(`${stringify(frame)}\n`);
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(writeSync(1, bytes));
    } catch (error) {
      // A pipe that is full, if the host made it non-blocking.
      if (error.code === "EPIPE") process.exit(0);
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
    }
  }
}
