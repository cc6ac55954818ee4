//! MCP tools against real child processes: this test binary acts as the server.

mod built_in;
mod calls;
mod ends;
mod fixture;
mod foreign;
mod http;
mod shared;
mod starts;
mod web;
