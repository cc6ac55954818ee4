import assert from "node:assert/strict";
import { test } from "node:test";

import { EffectError, UsageError, agent } from "../src/index.js";
import { everyPrefix, fails, play } from "../src/testing.js";

const notes = agent("release-notes", { critical: ["fs.write_file"], servers: ["repo", "fs"] }, async (ctx, { since, out }) => {
  const commits = await ctx.tool("repo", "commits", { since });
  const details = await ctx.gather(...commits.map(({ id }) => ctx.tool.later("repo", "commit", { id })));
  const text = (await ctx.chat("Write release notes.", { context: details })).text;
  await ctx.tool("fs", "write_file", { path: out, text });
  return { report: text };
});
const input = { since: "v1", out: "NOTES.md" };
const script = () => ({
  tools: { "repo.commits": [[{ id: "a" }, { id: "b" }]], "repo.commit": ({ id }) => ({ id, text: `fix ${id}` }), "fs.write_file": ["ok"] },
  chats: ["Two fixes."],
  answers: [{ decision: "approve" }],
});

test("a session resumes from every prefix and repeats nothing", async () => {
  const { result, journal } = await everyPrefix(notes, input, script());
  assert.deepEqual(result, { report: "Two fixes." });
  assert.deepEqual(journal.map(({ name }) => name), ["repo.commits", "repo.commit", "repo.commit", "chat", "fs.write_file"]);
});

test("a rejected call is an error that the agent sees", async () => {
  const refused = { ...script(), answers: [{ decision: "reject", reason: "not on a Friday" }] };
  delete refused.tools["fs.write_file"];
  const { error } = await play(notes, input, refused);
  assert.equal(error.type, "EffectError");
  assert.equal(error.message, "not on a Friday");
  assert.match(error.at, /agent\.test\.js:\d+$/);
});

test("concurrent tasks ask in the same order whatever arrives first", async () => {
  const racing = agent("racing", {}, async (ctx) => {
    const task = async (name, pause) => {
      await ctx.step(`${name} begins`, () => new Promise((done) => setTimeout(done, pause, name)));
      return ctx.step(`${name} ends`, () => name);
    };
    return Promise.all([task("slow", 20), task("fast", 1)]);
  });
  const { result, journal } = await everyPrefix(racing, null);
  assert.deepEqual(result, ["slow", "fast"]);
  assert.deepEqual(journal.map(({ name }) => name), ["slow begins", "fast begins", "slow ends", "fast ends"]);
});

test("an effect inside a step is refused", async () => {
  const nested = agent("nested", {}, (ctx) => ctx.step("outer", () => ctx.now()));
  const { error } = await play(nested, null);
  assert.match(error.message, /inside the step `outer`/);
  assert.ok(UsageError);
});

test("an error of a step can be caught and comes again", async () => {
  const careful = agent("careful", {}, async (ctx) => {
    try {
      await ctx.step("divide", () => {
        throw new RangeError("by zero");
      });
    } catch (error) {
      assert.ok(error instanceof EffectError);
      return { kind: error.kind, category: error.category, message: error.message };
    }
  });
  const { result } = await everyPrefix(careful, null);
  assert.deepEqual(result, { kind: "step", category: "RangeError", message: "by zero" });
});

test("another effect at an ordinal is named", async () => {
  const first = await play(agent("a", {}, (ctx) => ctx.step("one", () => 1)), null);
  const changed = agent("a", {}, (ctx) => ctx.step("two", () => 1));
  await assert.rejects(play(changed, null, {}, first.journal), /effect 1 was `one` and is `two`/);
});

test("the tool loop gives errors back to the model", async () => {
  const looping = agent("loop", {}, (ctx) => ctx.runTools("Tidy up.", { servers: ["fs"] }));
  const tools = [{ server: "fs", name: "list", input_schema: { type: "object" } }];
  const call = (id, tool) => ({ calls: [{ id, server: "fs", tool, arguments: {} }] });
  const { result, journal } = await everyPrefix(looping, null, {
    tools: { "fs.tools/list": [{ tools }], "fs.list": [fails("tool", "no such folder")] },
    chats: [call("1", "list"), call("2", "delete"), "Nothing to do."],
  });
  assert.equal(result.text, "Nothing to do.");
  assert.deepEqual(journal.map(({ name }) => name), ["fs.tools/list", "chat", "fs.list", "chat", "chat"]);
});

test("an unused outcome fails the test", async () => {
  await assert.rejects(play(notes, input, { ...script(), chats: ["One.", "Two."] }), /1 outcomes of `a chat`/);
});

test("time, randomness and ids are effects", async () => {
  const all = agent("all", {}, async (ctx) => [await ctx.now(), await ctx.random(), await ctx.uuid()]);
  const { result } = await everyPrefix(all, null);
  assert.deepEqual(result, ["2026-01-01T00:00:00.000Z", 0.5, "00000000-0000-4000-8000-000000000001"]);
});

test("an agent's options are checked", () => {
  assert.throws(() => agent("Big", {}, async () => 1), /lower-case/);
  assert.throws(() => agent("a", { servrs: [] }, async () => 1), /unknown option `servrs`/);
});
