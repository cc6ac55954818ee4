// One run of an agent's function: gives ordinals to effects, sends frames, and gives results back in a fixed order.
//
// It does no IO. `stdio.js` connects it to a host's pipes, and `testing.js` to a script in memory.

import { AsyncLocalStorage } from "node:async_hooks";

import { stringify } from "./json.js";
import { lineOfUser } from "./line.js";

export const VALUE_BYTES_MAX = 4_193_280;

/** An effect that failed. The same error comes again in a replay, so an agent may catch it and go on. */
export class EffectError extends Error {
  constructor({ kind, category, message }, at) {
    super(message);
    this.name = "EffectError";
    // The line that asked for it: the stack ends in the kit.
    this.at = at;
    this.kind = kind;
    this.category = category;
  }
}

/** A mistake of the agent's code, such as an effect inside a step. */
export class UsageError extends Error {
  constructor(message) {
    super(message);
    this.name = "UsageError";
  }
}

// Set while a step's function or a chat's policy runs.
const inside = new AsyncLocalStorage();

export class Program {
  #send;
  #ordinal = 0;
  #open = new Map();
  #arrived = new Map();
  #delivered = 0;
  #isDelivering = false;
  #hasEnded = false;

  /** `send` gets each frame as an object. */
  constructor(send) {
    this.#send = send;
  }

  /**
   * Asks the host for an effect. Returns a promise of its `ok`, or of an EffectError.
   *
   * `work` does the program's own part when the host says `run`: the function of a step, or the policy of a chat.
   */
  effect(fields, work) {
    if (inside.getStore()) {
      throw new UsageError(`an effect (${fields.kind}) inside ${inside.getStore()}; ask for it outside, and pass its result`);
    }
    if (this.#hasEnded) throw new UsageError("an effect after the agent's function has returned");
    // Before the number is used: a value that cannot be sent is no effect.
    const bytes = Buffer.byteLength(stringify(fields));
    if (bytes > VALUE_BYTES_MAX) throw new RangeError(`the arguments have ${bytes} bytes; at most ${VALUE_BYTES_MAX} are possible`);
    this.#ordinal += 1;
    const ordinal = this.#ordinal;
    const at = lineOfUser();
    const result = new Promise((resolve, reject) => this.#open.set(ordinal, { resolve, reject, work, fields, at }));
    this.#send({ type: "effect", ordinal, ...fields, at });
    return result;
  }

  /** Takes a frame of the host. */
  receive(frame) {
    if (frame.type === "run") this.#run(frame.ordinal);
    else if (frame.type === "result") this.#arrive(frame);
    else throw new Error(`unknown frame of the host: ${frame.type}`);
  }

  /** Runs the agent's function, and sends `end`. */
  async main(call) {
    let frame;
    try {
      const result = (await call()) ?? null;
      const bytes = Buffer.byteLength(stringify(result));
      if (bytes > VALUE_BYTES_MAX) throw new RangeError(`the result has ${bytes} bytes; at most ${VALUE_BYTES_MAX} are possible`);
      frame = { type: "end", result };
    } catch (error) {
      frame = { type: "end", error: { ...described(error), at: error?.at ?? lineOfUser(error) } };
    }
    this.#hasEnded = true;
    this.#send(frame);
  }

  async #run(ordinal) {
    const { work, fields } = this.#open.get(ordinal) ?? {};
    if (!work) throw new Error(`the host asked for the work of effect ${ordinal}, which has none`);
    const name = fields.kind === "step" ? `the step \`${fields.name}\`` : "the policy of a chat";
    let frame;
    try {
      const ok = (await inside.run(name, work)) ?? null;
      const bytes = Buffer.byteLength(stringify(ok));
      if (bytes > VALUE_BYTES_MAX) throw new RangeError(`${name} returned ${bytes} bytes; at most ${VALUE_BYTES_MAX} are possible`);
      frame = { type: "performed", ordinal, ok };
    } catch (error) {
      frame = { type: "performed", ordinal, error: described(error) };
    }
    this.#send(frame);
  }

  #arrive(frame) {
    this.#arrived.set(frame.ordinal, frame);
    this.#deliver();
  }

  // Results are given in the order of ordinals, one at a time, each when no task can run. So the order in which tasks
  // go on, and the ordinals of what they ask for next, follow from the program alone and not from the network.
  #deliver() {
    const next = this.#arrived.get(this.#delivered + 1);
    if (this.#isDelivering || !next) return;
    this.#isDelivering = true;
    this.#delivered += 1;
    this.#arrived.delete(next.ordinal);
    const { resolve, reject, at } = this.#open.get(next.ordinal);
    this.#open.delete(next.ordinal);
    if (next.error) reject(new EffectError(next.error, at));
    else resolve(next.ok ?? null);
    // A macrotask: all promises that can go on have done so before.
    setImmediate(() => {
      this.#isDelivering = false;
      this.#deliver();
    });
  }
}

function described(error) {
  if (!(error instanceof Error)) return { type: "Error", message: String(error) };
  return { type: error.name || "Error", message: error.message };
}
