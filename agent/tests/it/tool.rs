//! Tools over MCP, against real child processes: this test binary in the role of a server.

mod built_in;
mod calls;
mod ends;
mod fixture;
mod foreign;
mod http;
mod starts;
mod web;
