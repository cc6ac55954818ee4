// The line of the user's code that asked for an effect, for error messages.

import { relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const KIT = fileURLToPath(new URL(".", import.meta.url));
const CHARACTERS_MAX = 300;

/** `agent.js:12`, relative to the working directory; undefined if the stack names no code of the user. */
export function lineOfUser(error = new Error()) {
  for (const line of String(error?.stack ?? "").split("\n")) {
    const found = /(?:\(|at (?:async )?)((?:file:\/\/)?\/[^()]*):(\d+):\d+\)?$/.exec(line.trim());
    if (!found) continue;
    const path = found[1].startsWith("file:") ? fileURLToPath(found[1]) : found[1];
    if (path.startsWith(KIT) || path.includes(`${sep}node_modules${sep}`)) continue;
    const near = relative(process.cwd(), path);
    return `${near.startsWith("..") ? path : near}:${found[2]}`.slice(-CHARACTERS_MAX);
  }
  return undefined;
}
