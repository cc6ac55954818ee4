//! What people see of a session: the words for its records, and the page that draws them.
//!
//! Pure: records go in, words and places come out. [`told`] says what a record means in a line,
//! [`waterfall`] puts all of them on one axis of time, [`drawing`] lays the agent's graph out with
//! the path that was taken; [`brief`] makes values short, [`text`] makes them harmless, for what
//! stands in a journal may have been written by anybody. [`page`] holds the files of the page, which
//! fetches the rest through the API and draws it.

pub mod brief;
pub mod drawing;
pub mod page;
pub mod text;
pub mod told;
pub mod waterfall;
