// Release notes from a repository's commits. A person approves the file before it is written.
import { agent, run } from "daybook";
import { z } from "zod";

const Input = z.object({ since: z.string(), out: z.string() });

export const releaseNotes = agent(
  "release-notes",
  {
    version: 1,
    summary: "Writes release notes.",
    title: "Release notes since {since}",
    critical: ["fs.write_file"],
    servers: ["repo", "fs"],
    input: Input,
  },
  async (ctx, { since, out }) => {
    const commits: { id: string }[] = await ctx.tool("repo", "commits", { since });
    const details = await ctx.gather(...commits.map(({ id }) => ctx.tool.later("repo", "commit", { id })));
    const notes = await ctx.chat("Write release notes.", { context: details });
    const bytes = await ctx.step("measure", (text: string) => Buffer.byteLength(text), notes.text ?? "");
    await ctx.tool("fs", "write_file", { path: out, text: notes.text });
    return { report: notes.text, bytes: bytes + 0 };
  },
);

if (process.argv[1]?.endsWith("release-notes.js")) await run(releaseNotes);
