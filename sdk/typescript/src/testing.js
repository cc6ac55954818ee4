// Plays sessions of an agent in memory: a script answers instead of models, tools and people.

import assert from "node:assert/strict";

import { Context } from "./context.js";
import { digest, nameOf } from "./digest.js";
import { parse, stringify } from "./json.js";
import { Program } from "./program.js";

/** What a script may throw or return for an effect that fails. */
export function fails(kind, message, category = kind) {
  return { [FAILURE]: { kind, category, message } };
}

const FAILURE = Symbol("failure");

/**
 * Plays a session to its end.
 *
 * `script` has, each a list of outcomes in order or a function: `tools` by `server.tool`, `chats`, `answers` (to questions
 * and, for critical tools, approvals). Steps run their own functions. An effect without an outcome in the script fails the
 * test, and so does an unused outcome.
 *
 * Returns `{result | error, journal, performed}`: the journal has `{ordinal, name, digest, ok | error}` of each effect.
 */
export async function play(agent, input, script = {}, journal = []) {
  const host = new Host(agent, script, journal);
  const end = await host.run(input);
  host.finish();
  return { ...end, journal: host.journal, performed: host.performed };
}

/**
 * Plays a session, and again from each prefix of its journal. Each must end alike, ask for the same effects, and perform no
 * journaled effect again. Returns the first run.
 */
export async function everyPrefix(agent, input, script = {}) {
  const whole = await play(agent, input, script);
  for (let length = whole.journal.length; length >= 0; length -= 1) {
    const prefix = whole.journal.slice(0, length);
    const rest = scriptAfter(script, prefix);
    const resumed = await play(agent, input, rest, prefix);
    assert.deepEqual(resumed.journal, whole.journal, `resumed after ${length} effects, the session differs`);
    assert.deepEqual([resumed.result, resumed.error], [whole.result, whole.error], `resumed after ${length} effects`);
    assert.ok(resumed.performed.every((ordinal) => ordinal > length), "a journaled effect was performed again");
  }
  return whole;
}

// What is left of the script after these effects were answered.
function scriptAfter(script, prefix) {
  const used = (count, list) => (Array.isArray(list) ? list.slice(count) : list);
  const count = (name) => prefix.filter((entry) => entry.name === name).length;
  const tools = Object.entries(script.tools ?? {}).map(([name, list]) => [name, used(count(name), list)]);
  return {
    tools: Object.fromEntries(tools),
    chats: used(count("chat"), script.chats ?? []),
    answers: used(prefix.reduce((sum, entry) => sum + entry.answers, 0), script.answers ?? []),
  };
}

class Host {
  constructor(agent, script, journal) {
    this.agent = agent;
    this.tools = Object.fromEntries(Object.entries(script.tools ?? {}).map(([name, list]) => [name, copy(list)]));
    this.chats = copy(script.chats ?? []);
    this.answers = copy(script.answers ?? []);
    this.journal = [...journal];
    this.replayed = journal.length;
    this.performed = [];
    this.effects = new Map();
  }

  run(input) {
    return new Promise((resolve, reject) => {
      const send = (frame) => {
        try {
          // As on the wire: what is sent is a copy.
          this.#take(parse(stringify(frame)), resolve);
        } catch (error) {
          reject(error);
        }
      };
      this.program = new Program(send);
      const session = "00000000-0000-4000-8000-000000000000";
      const { name, version } = this.agent;
      const context = new Context(this.program, { session, agent: name, version, replay: this.replayed });
      void this.program.main(() => this.agent.call(context, parse(stringify(input))));
    });
  }

  #take(frame, resolve) {
    if (frame.type === "end") return resolve({ result: frame.result, error: frame.error });
    if (frame.type === "performed") return this.#answer(frame.ordinal, frame.error ? step(frame.error) : { ok: frame.ok });
    const { type: _, at: __, ordinal, ...effect } = frame;
    this.effects.set(ordinal, effect);
    const recorded = this.journal[ordinal - 1];
    if (recorded && ordinal <= this.replayed) {
      assert.equal(digest(effect), recorded.digest, `effect ${ordinal} was \`${recorded.name}\` and is \`${nameOf(effect)}\``);
      return void queueMicrotask(() => this.#give(ordinal, recorded));
    }
    this.performed.push(ordinal);
    this.#perform(ordinal, effect);
  }

  #perform(ordinal, effect) {
    const name = nameOf(effect);
    if (effect.kind === "step") return void queueMicrotask(() => this.program.receive({ type: "run", ordinal }));
    let answers = 0;
    if (effect.kind === "tool" && this.#isCritical(effect)) {
      const answer = take(this.answers, `an approval of \`${name}\``, effect);
      answers = 1;
      if (answer.decision === "edit") effect = { ...effect, arguments: answer.arguments };
      else if (answer.decision !== "approve") {
        const message = answer.reason ?? answer.text ?? "rejected";
        return this.#answer(ordinal, { error: { kind: "rejected", category: "rejected", message } }, answers);
      }
    }
    const outcome = this.#outcome(name, effect);
    if (effect.kind === "ask") answers = 1;
    this.#answer(ordinal, outcome?.[FAILURE] ? { error: outcome[FAILURE] } : { ok: outcome ?? null }, answers);
  }

  #outcome(name, effect) {
    switch (effect.kind) {
      case "tool":
        return take(this.tools[name] ?? [], `\`${name}\` with ${stringify(effect.arguments)}`, effect.arguments);
      case "chat":
        return reply(take(this.chats, "a chat", effect));
      case "ask":
        return take(this.answers, `the question \`${effect.question}\``, effect);
      case "now":
        return "2026-01-01T00:00:00.000000000Z";
      case "random":
        return 2 ** 52;
      case "uuid":
        return "00000000-0000-4000-8000-000000000001";
      default:
        return null;
    }
  }

  #isCritical({ server, tool }) {
    return [...this.agent.critical].some((name) => name === tool || name === `${server}.${tool}`);
  }

  #answer(ordinal, outcome, answers = 0) {
    const effect = this.effects.get(ordinal);
    const entry = { ordinal, name: nameOf(effect), digest: digest(effect), answers, ...parse(stringify(outcome)) };
    this.journal[ordinal - 1] = entry;
    queueMicrotask(() => this.#give(ordinal, entry));
  }

  #give(ordinal, { ok, error }) {
    this.program.receive(error ? { type: "result", ordinal, error } : { type: "result", ordinal, ok });
  }

  /** Fails if an outcome of the script was not used. */
  finish() {
    const lists = { ...this.tools, "a chat": this.chats, "an answer": this.answers };
    for (const [name, list] of Object.entries(lists)) {
      if (Array.isArray(list)) assert.equal(list.length, 0, `${list.length} outcomes of \`${name}\` in the script were not used`);
    }
  }
}

function take(list, what, argument) {
  if (typeof list === "function") return list(argument);
  assert.ok(list.length > 0, `the script has no outcome for ${what}`);
  return list.shift();
}

function step({ type, message }) {
  return { error: { kind: "step", category: type, message } };
}

function reply(said) {
  if (said?.[FAILURE]) return said;
  return { calls: [], by: { model: "script" }, ...(typeof said === "string" ? { text: said } : said) };
}

const copy = (list) => (Array.isArray(list) ? [...list] : list);
