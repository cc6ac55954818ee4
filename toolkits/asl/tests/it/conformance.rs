//! Every execution recorded on AWS runs here with the same result, except for listed differences.

use std::fmt::Write as _;

use crate::recorded::folder;
use crate::table::Table;

#[test]
fn executions_recorded_on_aws_run_the_same_here() {
    if folder().is_none() {
        return;
    }
    let table = Table::of_all();
    println!("{}", table.differences.join("\n"));
    let mut floor = String::new();
    for (class, tally) in &table.classes {
        writeln!(floor, "{class}: {tally}").unwrap();
    }
    writeln!(floor, "all: {}", table.whole).unwrap();
    insta::assert_snapshot!(floor, @r#"
    distributed-map: 19 passed, 2 failed, 21 in all (level 1: 21, 2: 21, 3: 19)
    event patterns: 114 passed, 0 failed, 114 in all (level 1: 114, 2: 114, 3: 114)
    input transformers: 24 passed, 0 failed, 24 in all (level 1: 24, 2: 24, 3: 24)
    lambda: 54 passed, 0 failed, 54 in all (level 1: 54, 2: 54, 3: 54)
    pure: 546 passed, 1 failed, 547 in all (level 1: 546, 2: 546, 3: 546)
    service: 39 passed, 0 failed, 39 in all (level 1: 39, 2: 39, 3: 39)
    validations: 269 passed, 0 failed, 269 in all (level 1: 269, 2: 269, 3: 269)
    all: 1065 passed, 3 failed, 1068 in all (level 1: 1067, 2: 1067, 3: 1065)
    "#);
}
