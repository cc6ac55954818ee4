import type { Agent, Answer, Json, Reply } from "./index.js";

declare const failure: unique symbol;
/** An effect that fails. */
export type Failure = { readonly [failure]: true };
export declare function fails(kind: string, message: string, category?: string): Failure;

type Outcomes<T> = (T | Failure)[] | ((request: any) => T | Failure);

/** What answers instead of models, tools and people. An unused outcome fails the test. */
export interface Script {
  /** By `server.tool`. */
  tools?: { [name: string]: Outcomes<Json> };
  chats?: Outcomes<string | Partial<Reply>>;
  /** To questions and, for critical tools, approvals. */
  answers?: Outcomes<Answer>;
}

export interface Entry {
  ordinal: number;
  name: string;
  digest: string;
  ok?: Json;
  error?: { kind: string; category: string; message: string };
}

export interface Played {
  result?: any;
  error?: { type: string; message: string; at?: string };
  journal: Entry[];
  /** The ordinals that were performed, and not replayed. */
  performed: number[];
}

/** Plays a session to its end. */
export declare function play(agent: Agent, input: unknown, script?: Script, journal?: Entry[]): Promise<Played>;

/** Plays a session, and again from each prefix of its journal. */
export declare function everyPrefix(agent: Agent, input: unknown, script?: Script): Promise<Played>;
