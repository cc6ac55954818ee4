// Durable agents for Daybook, in JavaScript and TypeScript. README.md shows one; docs/protocol.md is what it speaks.

export { Agent, agent } from "./agent.js";
export { Context } from "./context.js";
export { EffectError, UsageError } from "./program.js";
export { run } from "./stdio.js";
