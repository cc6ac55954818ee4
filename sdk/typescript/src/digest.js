// The digest of an effect (docs/protocol.md, "Digests"). Only tests without a host need it: the host computes its own.

import { createHash } from "node:crypto";

import { canonical } from "./json.js";

/** The text that the digest of an effect covers. */
export function covered(effect) {
  return canonical({ arguments: argumentsOf(effect) ?? null, kind: effect.kind, name: nameOf(effect) });
}

export function digest(effect) {
  return createHash("sha256").update(covered(effect)).digest("hex");
}

/** The effect's name, as the journal has it in `Node`. */
export function nameOf(effect) {
  switch (effect.kind) {
    case "step":
      return effect.name;
    case "tool":
      return `${effect.server}.${effect.tool}`;
    default:
      return effect.kind;
  }
}

function argumentsOf(effect) {
  switch (effect.kind) {
    case "step":
    case "tool":
      return effect.arguments;
    case "chat":
      return {
        messages: effect.messages.map(messageOf),
        schema: effect.schema ?? null,
        tools: (effect.tools ?? []).map(({ server, name }) => (server ? `${server}.${name}` : name)),
      };
    case "ask": {
      const { arguments: args = null, question, server = null, tool = null } = effect;
      return { arguments: args, question, server, tool };
    }
    case "sleep":
      return { seconds: effect.seconds };
    case "note":
      return { data: effect.data ?? null, text: effect.text };
    default:
      return null;
  }
}

function messageOf({ from: _, is_error: isError, text, calls, ...message }) {
  if (text !== null && text !== undefined) message.text = text;
  if (calls?.length > 0) message.calls = calls;
  return isError ? { ...message, is_error: true } : message;
}
