/** What the journal can hold. Integers beyond 2^53 - 1 arrive as bigint. */
export type Json = null | boolean | number | bigint | string | Json[] | { [name: string]: Json | undefined };

/** A JSON schema, or a schema of a library that implements Standard JSON Schema (zod, valibot, arktype …). */
export type Schema<T = unknown> = StandardSchema<T> | { readonly [keyword: string]: unknown };

export interface StandardSchema<T> {
  readonly "~standard": {
    readonly vendor: string;
    readonly types?: { readonly input: unknown; readonly output: T } | undefined;
  };
}

/** The type that a schema describes; unknown for a JSON schema. */
export type TypeOf<S> = S extends StandardSchema<infer T> ? T : any;

export interface AgentOptions<I, R> {
  /** Change it with every change of the order or the arguments of effects. Default 1. */
  version?: number | string;
  /** What the agent does, in one sentence. */
  summary?: string;
  /** A session's title; `{field}` stands for a field of the input. */
  title?: string;
  /** Tools that need a person's approval for each call, as `tool` or `server.tool`. */
  critical?: string[];
  /** Tools that change the world: called after an intent, and repeated only if the call was provably not sent. */
  atMostOnce?: string[];
  /** The MCP servers that the agent needs. */
  servers?: string[];
  input?: I;
  result?: R;
}

export declare class Agent {
  readonly name: string;
  readonly version: string;
}

/** Defines an agent. */
export declare function agent<I extends Schema, R extends Schema>(
  name: string,
  options: AgentOptions<I, R>,
  main: (ctx: Context, input: TypeOf<I>) => Promise<unknown>,
): Agent;

/** Runs the agent for the host that started this process. */
export declare function run(agent: Agent): Promise<void>;

/** An effect that `gather` asks for. */
export interface Later<T> {
  start(): Promise<T>;
}

export interface Effect<A extends unknown[], T> {
  (...args: A): Promise<T>;
  later(...args: A): Later<T>;
}

export interface ToolSpec {
  server?: string;
  name: string;
  description?: string;
  input_schema: Json;
}

export interface ToolCall {
  id: string;
  server?: string;
  tool: string;
  arguments: Json;
}

export interface Reply<T = any> {
  text?: string;
  /** Empty if the model calls nothing. The agent makes the calls with further effects. */
  calls: ToolCall[];
  /** The reply as JSON, if the chat has a schema. */
  json?: T;
  by: "policy" | { model: string };
}

export type Message =
  | { role: "user"; text: string; from?: number }
  | { role: "assistant"; text?: string; calls?: ToolCall[]; from?: number }
  | { role: "tool"; id: string; tool: string; content: Json; is_error?: boolean; from?: number };

export interface ChatOptions {
  system?: string;
  /** Written behind the prompt: a text as it is, anything else as JSON with sorted keys. */
  context?: unknown;
  /** The conversation before the prompt. */
  messages?: Message[];
  /** What the model may call. */
  tools?: ToolSpec[];
  /** `auto`, `any`, or the name of a tool that must be called. */
  choice?: string;
  /** The schema of the reply. */
  schema?: Schema;
  /** The answer without a model. */
  policy?: (messages: Message[]) => string | Partial<Reply> | Promise<string | Partial<Reply>>;
  maxOutputTokens?: number;
  temperaturePercent?: number;
  timeoutSeconds?: number;
}

export interface Answer {
  decision: "approve" | "reject" | "edit" | "say" | "expired";
  text?: string;
  reason?: string;
  arguments?: Json;
}

export interface AskOptions {
  /** The call in question. */
  server?: string;
  tool?: string;
  arguments?: Json;
  /** The schema of edited arguments. */
  schema?: Schema;
  choices?: ("approve" | "reject" | "edit" | "say")[];
  expiresSeconds?: number;
}

/** The effects of a session. Everything that is not computed from their results must be one. */
export declare class Context {
  readonly session: string;
  readonly agent: string;
  readonly version: string;

  /** Runs a function once, and journals what it returns. A critical step is performed at most once. */
  step: {
    <A extends unknown[], T>(name: string | { name: string; critical?: boolean }, work: (...args: A) => T | Promise<T>, ...args: A): Promise<T>;
    later<A extends unknown[], T>(name: string | { name: string; critical?: boolean }, work: (...args: A) => T | Promise<T>, ...args: A): Later<T>;
  };
  tool: Effect<[server: string, tool: string, args?: object], any>;
  chat: Effect<[prompt: string | null, options?: ChatOptions], Reply>;
  ask(question: string, options?: AskOptions): Promise<Answer>;
  sleep(seconds: number): Promise<void>;
  note(text: string, data?: Json): Promise<void>;
  now(): Promise<Date>;
  random(): Promise<number>;
  uuid(): Promise<string>;
  gather<T extends readonly Later<unknown>[]>(...laters: T): Promise<{ -readonly [K in keyof T]: T[K] extends Later<infer R> ? R : never }>;
  /** Lets the model call the tools of these servers until it answers without a call. */
  runTools(
    prompt: string,
    options: { servers: string[]; until?: (reply: Reply) => boolean; turnsMax?: number } & ChatOptions,
  ): Promise<Reply>;
}

/** An effect that failed. The same error comes again in a replay, so an agent may catch it and go on. */
export declare class EffectError extends Error {
  readonly kind: "tool" | "step" | "rejected" | "expired" | "not_sent" | "refused" | "unknown" | "invalid_reply";
  readonly category: string;
}

/** A mistake of the agent's code, such as an effect inside a step. */
export declare class UsageError extends Error {}
