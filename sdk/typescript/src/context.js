// What an agent's function gets: the effects, by name.

import { canonical } from "./json.js";
import { UsageError } from "./program.js";
import { schemaOf, validated } from "./schema.js";

const RUN_TOOLS_TURNS_MAX = 20;

/** Adds `name.later(...)`, which describes an effect for `gather` and asks for nothing yet. */
function withLater(ask) {
  ask.later = (...args) => ({ start: () => ask(...args) });
  return ask;
}

/** The context of one session. */
export class Context {
  #program;

  constructor(program, { session, agent, version, replay }) {
    this.#program = program;
    Object.assign(this, { session, agent, version, replay });
    for (const name of ["step", "tool", "chat"]) this[name] = withLater(this[`_${name}`].bind(this));
  }

  async _step(named, work, ...args) {
    const { name, critical = false } = typeof named === "string" ? { name: named } : named;
    if (typeof work !== "function") throw new UsageError(`step \`${name}\`: the second argument is the function to run`);
    const fields = { kind: "step", name, arguments: args.length > 0 ? args : null };
    if (critical) fields.critical = true;
    return this.#program.effect(fields, () => work(...args));
  }

  async _tool(server, tool, args = {}) {
    return this.#program.effect({ kind: "tool", server, tool, arguments: args });
  }

  async _chat(prompt, options = {}) {
    const { context, messages = [], tools = [], schema, policy, system, choice } = options;
    const text = context === undefined ? prompt : `${prompt}\n\n${textOf(context)}`;
    const asked = prompt === null || prompt === undefined ? messages : [...messages, { role: "user", text }];
    const fields = { kind: "chat", messages: asked, tools, choice, schema: schema ? schemaOf(schema) : null };
    Object.assign(fields, { system, policy: policy !== undefined, max_output_tokens: options.maxOutputTokens });
    Object.assign(fields, { temperature_percent: options.temperaturePercent, timeout_seconds: options.timeoutSeconds });
    const work = policy === undefined ? undefined : async () => replyOf(await policy(asked));
    const reply = await this.#program.effect(fields, work);
    if (schema && "json" in reply) reply.json = await validated(schema, reply.json);
    return reply;
  }

  /** Asks a person. The session waits without a process, for days if need be. */
  async ask(question, options = {}) {
    const { server, tool, arguments: args, schema, choices, expiresSeconds } = options;
    const fields = { kind: "ask", question, server, tool, arguments: args, choices, expires_seconds: expiresSeconds };
    if (schema) fields.schema = schemaOf(schema);
    return this.#program.effect(fields);
  }

  async sleep(seconds) {
    await this.#program.effect({ kind: "sleep", seconds });
  }

  async note(text, data = null) {
    await this.#program.effect({ kind: "note", text, data });
  }

  /** The time, with milliseconds. */
  async now() {
    return new Date(await this.#program.effect({ kind: "now" }));
  }

  /** A number from 0 to 1, 1 excluded. */
  async random() {
    return Number(await this.#program.effect({ kind: "random" })) / 2 ** 53;
  }

  async uuid() {
    return this.#program.effect({ kind: "uuid" });
  }

  /** Asks for several effects at once; results in the order of the list. */
  async gather(...laters) {
    // All are waited for: a failure must not leave the others unread.
    const settled = await Promise.allSettled(laters.map((later) => later.start()));
    const failed = settled.find(({ status }) => status === "rejected");
    if (failed) throw failed.reason;
    return settled.map(({ value }) => value);
  }

  /**
   * Lets the model call the tools of these servers until it answers without a call, or until `until(reply)` is true.
   * Returns the last reply.
   */
  async runTools(prompt, { servers, until = () => false, turnsMax = RUN_TOOLS_TURNS_MAX, ...options } = {}) {
    const lists = await this.gather(...servers.map((server) => this.tool.later(server, "tools/list")));
    const tools = lists.flatMap((list) => list.tools);
    let messages = [{ role: "user", text: prompt }];
    for (let turn = 0; turn < turnsMax; turn += 1) {
      const reply = await this.chat(null, { ...options, messages, tools });
      if (reply.calls.length === 0 || until(reply)) return reply;
      messages = [...messages, { role: "assistant", text: reply.text, calls: reply.calls }];
      messages.push(...(await Promise.all(reply.calls.map((call) => this.#answer(call, tools)))));
    }
    throw new Error(`no answer after ${turnsMax} turns of tool calls`);
  }

  // The message with the result of a model's call. An error goes back to the model.
  async #answer({ id, server, tool, arguments: args }, tools) {
    const message = { role: "tool", id, tool };
    const offer = tools.find((one) => one.name === tool && (!server || one.server === server));
    if (!offer) return { ...message, content: `there is no tool \`${tool}\``, is_error: true };
    try {
      return { ...message, content: await this.tool(offer.server, tool, args) };
    } catch (error) {
      if (error.name !== "EffectError") throw error;
      return { ...message, content: error.message, is_error: true };
    }
  }
}

// Every kit writes a context alike, so that one agent has the same digests in each language.
const textOf = (context) => (typeof context === "string" ? context : canonical(context));

function replyOf(reply) {
  return typeof reply === "string" ? { text: reply, calls: [] } : reply;
}
