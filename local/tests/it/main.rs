//! The stack's parts together: the table, executions over the real state machine, the endpoint, and
//! whole sessions.

mod dynamodb;
mod endpoint;
mod executions;
mod stack;
mod world;
