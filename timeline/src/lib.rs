//! What people see of a session: the words for its records, and the page that draws them.
//!
//! Pure: records go in, words and places come out. [`told`] says what a record means in a line,
//! [`waterfall`] puts all of them on one axis of time, [`drawing`] lays the agent's graph and the
//! state machine out with the path that was taken, [`runs`] says who worked when and [`ledger`] what
//! was spent. [`conclusion`] is what somebody reads first, with [`advice`] on what to do next, and
//! [`evidence`] leads from each claim to its record. [`compare`] puts two sessions beside one another,
//! [`health`] counts many. [`brief`] makes values short, [`text`] makes them harmless, for what stands
//! in a journal may have been written by anybody. [`page`] holds the files of the page, which fetches
//! the rest through the API and draws it; [`plain`] is the same for browsers that run no script.

pub mod advice;
pub mod brief;
pub mod compare;
pub mod conclusion;
pub mod drawing;
pub mod evidence;
pub mod health;
pub mod ledger;
pub mod page;
pub mod plain;
pub mod runs;
#[cfg(test)]
mod testing;
pub mod text;
pub mod told;
pub mod waterfall;
