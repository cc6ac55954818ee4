// The program of the suite that every kit passes; `it.py` is the same in Python.

import { spawn } from "node:child_process";
import { appendFileSync, readFileSync, writeSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { agent, run } = await import(pathToFileURL(`${process.env.KIT}/src/index.js`).href);

const pause = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

const it = agent("it", { version: 1, input: { type: "object" }, result: { type: "object" } }, async (ctx, input) => {
  const { case: name, log, count = 0 } = input;
  const did = (line) => appendFileSync(log, `${line}\n`);
  const work = (n) => {
    did(`work ${n}`);
    return { n, half: n / 2 };
  };
  const fail = () => {
    did("fail");
    throw Object.assign(new Error("no such thing"), { name: "ValueError" });
  };
  const hang = (seconds) => {
    did(`pid ${process.pid}`);
    pause(seconds * 1000);
    return null;
  };
  const numbers = Array.from({ length: count }, (_, i) => i);
  const hello = { policy: () => "hello" };

  if (name === "everything") {
    const first = await ctx.step("first", work, 1);
    const both = await ctx.gather(ctx.step.later("second", work, 2), ctx.step.later("third", work, 3));
    const caught = await ctx.step("fails", fail).catch((error) => `${error.category}: ${error.message}`);
    const reply = await ctx.chat("Say hello.", { context: both, ...hello });
    await ctx.note("halfway", { seen: 2 });
    const [at, luck, uid] = [await ctx.now(), await ctx.random(), await ctx.uuid()];
    const answer = await ctx.ask("Go on?", { choices: ["approve", "reject"] });
    await ctx.sleep(0.01);
    const last = await ctx.step({ name: "last", critical: true }, work, 4);
    if (!(at.getFullYear() > 2000 && luck >= 0 && luck < 1)) throw new Error(`${at} ${luck}`);
    return { said: [first, both, caught, reply.text, answer.decision, last], uid };
  }
  if (name === "count") {
    let sum = 0;
    for (const i of numbers) sum += await ctx.step("n", (n) => n, i);
    return { sum };
  }
  if (name === "gather") {
    return { found: await ctx.gather(...numbers.map((i) => ctx.step.later("n", (n) => n, i))) };
  }
  if (name === "large") {
    return { length: (await ctx.step("large", () => "x".repeat(count))).length };
  }
  if (name === "chats") {
    for (const _ of numbers) await ctx.chat("Say hello.", hello);
    return {};
  }
  if (name === "critical") {
    const slow = (seconds) => {
      hang(seconds);
      return "yes";
    };
    return { done: await ctx.step({ name: "slow", critical: true }, slow, count) };
  }
  if (name === "hang in a step") {
    await ctx.step("hang", hang, count);
    await ctx.step("after", work, 1);
    return {};
  }
  await ctx.step("before", work, 1);
  if (name === "exit") {
    writeSync(2, "the end is near\n");
    process.exit(3);
  }
  if (name === "hang") pause(600_000);
  if (name === "garbage") {
    writeSync(1, "hello\n");
    pause(600_000);
  }
  if (name === "flood") {
    for (let left = 80; left > 0; ) {
      try {
        writeSync(1, "x".repeat(65_536));
        left -= 1;
      } catch (error) {
        if (error.code !== "EAGAIN") throw error;
        pause(2);
      }
    }
    pause(600_000);
  }
  if (name === "fork") {
    const child = spawn("sleep", ["600"], { stdio: "inherit" });
    did(`pid ${child.pid}`);
    readFileSync(log);
    process.exit(4);
  }
  throw new Error(`no such case: ${name}`);
});

await run(it);
