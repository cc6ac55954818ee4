//! The machine, driven through a graph whose input is the list of what it does.

mod budgets;
mod calls;
mod listed;
mod people;
mod random;
mod resume;
mod routes;
mod script;
