// Agents: a function with a name, a version, and what the host must know before it runs.

import { schemaOf, validated } from "./schema.js";

/** An agent. Create one with `agent`. */
export class Agent {
  constructor(options, main) {
    Object.assign(this, options);
    this.main = main;
  }

  /** What the host registers: the frame `description`. */
  description() {
    const { name, version, summary, title, critical, atMostOnce, servers, input, result } = this;
    return {
      type: "description",
      name,
      version,
      summary,
      title,
      input_schema: input ? schemaOf(input) : undefined,
      result_schema: result ? schemaOf(result) : undefined,
      critical,
      at_most_once: atMostOnce,
      servers,
    };
  }

  /** Calls the agent's function. */
  async call(context, input) {
    return this.main(context, this.input ? await validated(this.input, input) : input);
  }
}

/**
 * Defines an agent.
 *
 * Change `version` with every change of the order or the arguments of effects: a session goes on only with the version
 * that it began with.
 */
export function agent(name, options, main) {
  const { version = 1, summary, title, critical = [], atMostOnce = [], servers = [], input, result, ...unknown } = options;
  const [other] = Object.keys(unknown);
  if (other) throw new TypeError(`agent \`${name}\`: unknown option \`${other}\``);
  if (!/^[a-z0-9_-]{1,64}$/.test(name)) {
    throw new TypeError(`agent \`${name}\`: a name has 1 to 64 lower-case letters, digits, \`-\` and \`_\``);
  }
  if (typeof main !== "function") throw new TypeError(`agent \`${name}\`: the third argument is its function`);
  return new Agent({ name, version: String(version), summary, title, critical, atMostOnce, servers, input, result }, main);
}
