//! Agents of Daybook as plain async functions.
//!
//! A function runs from the top and asks its host for effects. The host journals each outcome. After a crash the function
//! runs again and gets the journaled outcomes, so it goes on where it was. `docs/protocol.md` says what a program and its
//! host say to each other.
//!
//! ```no_run
//! use daybook_kit::{Agent, Context, Error};
//! use serde_json::{Value, json};
//!
//! #[derive(serde::Deserialize)]
//! struct Input {
//!     since: String,
//!     out: String,
//! }
//!
//! fn main() {
//!     let agent = Agent::new("release-notes", "1", release_notes);
//!     daybook_kit::run(agent.critical(["fs.write_file"]).servers(["repo", "fs"]));
//! }
//!
//! async fn release_notes(ctx: Context, input: Input) -> Result<Value, Error> {
//!     let commits: Vec<Value> = ctx.tool("repo", "commits", json!({"since": input.since})).await?;
//!     let details = commits.iter().map(|it| ctx.tool::<Value>("repo", "commit", json!({"id": it["id"]})));
//!     let details = ctx.gather(details).await?;
//!     let notes = ctx.chat("Write release notes.").context(&details).await?;
//!     let text = notes.text.unwrap_or_default();
//!     let file = json!({"path": input.out, "text": text});
//!     ctx.tool::<Value>("fs", "write_file", file).await?; // asks a person first, once
//!     Ok(json!({ "report": text }))
//! }
//! ```
//!
//! **The code between effects must be deterministic.** Time, randomness, files and the network belong into effects. A
//! [`Context`] is not `Send`, so effects come from the agent's own task: use [`Context::gather`] or `join!`, not a spawned
//! task. A step's function may use any runtime: call [`serve`] inside of it.

mod agent;
mod chat;
mod context;
mod error;
mod json;
mod program;
mod serving;
pub mod testing;

pub use agent::Agent;
pub use chat::{Author, Call, Chat, Message, Reply, ToolLoop, ToolSpec};
pub use context::{Answer, Ask, Context, Decision, Effect};
pub use error::{EffectError, Error, Kind};
pub use serving::{run, serve};

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;

/// Largest JSON of one value, in bytes.
pub const VALUE_BYTES_MAX: usize = 4_193_280;
