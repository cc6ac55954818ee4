//! The incident agent: why does this Lambda function fail?
//!
//! It reads the incident ([`message`]), looks at logs, role and configuration through an MCP
//! server ([`tool`]) and hands over a [`diagnosis`] whose every claim points at what a tool
//! showed ([`evidence`], [`field_path`]). A model may drive it; [`policy`] does it without one,
//! by rules over what the tools return. [`graph`] ties them together.

mod citations;
pub mod diagnosis;
pub mod evidence;
pub mod field_path;
mod findings;
pub mod graph;
mod iam;
mod log_lines;
mod logging;
mod managed_policies;
pub mod message;
mod permissions;
pub mod policy;
mod prompt;
mod remediation;
mod schema;
mod signals;
pub mod tool;
