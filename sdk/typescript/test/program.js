// The program of stdio.test.js.
import { agent, run } from "../src/index.js";

console.log("this line goes to stderr");
await run(
  agent("adder", { version: 2, summary: "Adds.", input: { type: "object" }, servers: ["s"] }, async (ctx, { a, b }) => {
    console.log("and this one");
    return ctx.step("add", (x, y) => x + y, a, b);
  }),
);
