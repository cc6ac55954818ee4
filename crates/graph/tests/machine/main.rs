//! Tests of the run, with a graph that performs the operations listed in its input.

mod budgets;
mod calls;
mod listed;
mod origins;
mod people;
mod random;
mod requests;
mod resume;
mod routes;
mod script;
