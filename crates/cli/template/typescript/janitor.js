// @ts-check
// Keeps a folder below a size limit; asks before it deletes.

import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { agent, run } from "daybook";

/** @param {string} folder */
const sizes = (folder) =>
  readdirSync(folder)
    .map((name) => ({ name, bytes: statSync(join(folder, name)).size }))
    .sort((a, b) => b.bytes - a.bytes);

/** @param {string} folder @param {string} name */
const remove = (folder, name) => {
  rmSync(join(folder, name));
  return name;
};

const input = {
  type: "object",
  properties: { folder: { type: "string" }, bytes_max: { type: "integer" } },
  required: ["folder", "bytes_max"],
  additionalProperties: false,
};

const janitor = agent(
  "janitor",
  { version: 1, title: "Tidy {folder}", summary: "Keeps a folder below a size limit; asks before it deletes.", input },
  async (ctx, { folder, bytes_max }) => {
    const files = await ctx.step("sizes", sizes, folder);
    let left = files.reduce((sum, { bytes }) => sum + bytes, 0);
    const deleted = [];
    for (const { name, bytes } of files) {
      if (left <= bytes_max) break;
      const answer = await ctx.ask(`Delete ${name} (${bytes} bytes)?`, { choices: ["approve", "reject"] });
      if (answer.decision !== "approve") continue;
      deleted.push(await ctx.step({ name: "delete", critical: true }, remove, folder, name));
      left -= bytes;
    }
    return { summary: `${deleted.length} files deleted.`, findings: deleted };
  },
);

// A test imports the agent, and runs nothing. Before Node.js 24 there is no `import.meta.main`.
if (import.meta.main ?? true) await run(janitor);
