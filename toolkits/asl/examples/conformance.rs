//! Runs every execution recorded on AWS, prints one line per feature, then `N passed, N failed`.
//!
//! A case passes if it agrees at all levels; each line also counts the cases at each level.
//! `CONFORMANCE_DIR` names the folder of recordings; `--differences` lists the differences.

#![expect(clippy::unwrap_used, reason = "a broken recording should stop it where it breaks")]

#[path = "../tests/it/given.rs"]
mod given;
#[path = "../tests/it/masks.rs"]
mod masks;
#[path = "../tests/it/recorded.rs"]
#[expect(dead_code, reason = "the tests cut histories, which this does not")]
mod recorded;
#[path = "../tests/it/table.rs"]
mod table;

fn main() {
    let table = table::Table::of_all();
    if std::env::args().any(|argument| argument == "--differences") {
        table.differences.iter().for_each(|difference| println!("{difference}"));
    }
    print!("{table}");
}
