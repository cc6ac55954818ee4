//! Plants defects in source text, each behind a switch.

use std::collections::{BTreeMap, BTreeSet};

use crate::defects::{Defect, LIST};
use tidy::rules::manifest;
use tidy::tree::{Finding, Tree};

/// The module that every crate with a defect gets in the copy: it returns the enabled defect.
const SWITCH: &str = "\
//! The enabled defect.

/// Its name; empty if none is enabled.
pub(crate) fn defect() -> &'static str {
    static DEFECT: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| std::env::var(\"DAYBOOK_DEFECT\").unwrap_or_default());
    &DEFECT
}
";

/// The environment variable that enables a defect.
pub(super) const SWITCHED_BY: &str = "DAYBOOK_DEFECT";

/// The state machine is not Rust: its defects replace the text where it is loaded.
const TEXT: &str = "crates/workflow/src/state_machine.asl.json";
const LOADER: &str = "crates/workflow/src/state_machine.rs";
const LOADED: &str = "TEXT.to_owned()";

/// A piece of code, and its replacements by the defect's name.
struct Site<'a> {
    code: &'a str,
    instead: BTreeMap<&'a str, String>,
}

/// The changed files, with all defects planted.
///
/// # Errors
/// A finding for each stale defect.
pub(super) fn plant(
    tree: &Tree,
    defects: &[Defect],
) -> Result<BTreeMap<String, String>, Vec<Finding>> {
    let mut files: BTreeMap<&str, BTreeMap<usize, Site<'_>>> = BTreeMap::new();
    let mut findings = Vec::new();
    for defect in defects {
        match place(tree, defect) {
            Ok((file, start, code, instead)) => {
                let places = files.entry(file).or_default();
                let place = places.entry(start).or_insert(Site { code, instead: BTreeMap::new() });
                if place.code == code {
                    place.instead.insert(&defect.name, instead);
                } else {
                    findings.push(stale(tree, defect, "shares its place with another defect"));
                }
            }
            Err(finding) => findings.push(finding),
        }
    }
    let mut planted = BTreeMap::new();
    for (file, places) in files {
        let text = tree.text(file).unwrap_or_default();
        match switched(text, &places) {
            Ok(text) => {
                planted.insert(file.to_owned(), text);
            }
            Err(name) => findings.extend(
                defects
                    .iter()
                    .filter(|defect| defect.name == name)
                    .map(|defect| stale(tree, defect, "overlaps another defect")),
            ),
        }
    }
    add_switches(tree, &mut planted);
    if findings.is_empty() { Ok(planted) } else { Err(findings) }
}

/// Locates a defect: file, offset, code and replacement.
fn place<'a>(
    tree: &Tree,
    defect: &'a Defect,
) -> Result<(&'a str, usize, &'a str, String), Finding> {
    let start = only(tree, &defect.file, defect, &defect.code)?;
    if defect.file != TEXT {
        return Ok((&defect.file, start, &defect.code, defect.with.clone()));
    }
    let text = tree.text(TEXT).unwrap_or_default();
    let (before, after) = (&text[..start], &text[start + defect.code.len()..]);
    let instead = format!("{:?}.to_owned()", format!("{before}{}{after}", defect.with));
    Ok((LOADER, only(tree, LOADER, defect, LOADED)?, LOADED, instead))
}

/// The offset of code that occurs exactly once.
fn only(tree: &Tree, file: &str, defect: &Defect, code: &str) -> Result<usize, Finding> {
    let Some(text) = tree.text(file) else {
        return Err(stale(tree, defect, &format!("names {file}, which does not exist")));
    };
    let places: Vec<usize> = text.match_indices(code).map(|(start, _)| start).collect();
    match places[..] {
        [start] if !code.is_empty() => Ok(start),
        _ => {
            let what =
                format!("is stale: its code occurs {} times in {file}, not once", places.len());
            Err(stale(tree, defect, &what))
        }
    }
}

fn stale(tree: &Tree, defect: &Defect, what: &str) -> Finding {
    let list = tree.text(LIST).unwrap_or_default();
    let named = format!("name = \"{}\"", defect.name);
    let line = list.lines().position(|line| line == named).map_or(1, |index| index + 1);
    Finding::new(LIST, line, format!("{} {what}", defect.name))
}

/// The text with a switch at each place.
///
/// # Errors
/// The name of a defect that overlaps another.
fn switched(text: &str, places: &BTreeMap<usize, Site<'_>>) -> Result<String, String> {
    let mut switched = String::new();
    let mut from = 0;
    for (start, place) in places {
        if *start < from {
            return Err(place.instead.keys().next().copied().unwrap_or_default().to_owned());
        }
        switched.push_str(&text[from..*start]);
        switched.push_str(&switch(place));
        from = start + place.code.len();
    }
    switched.push_str(&text[from..]);
    Ok(switched)
}

/// A `match` that selects the code; in parentheses if the code is an expression.
fn switch(place: &Site<'_>) -> String {
    let arms: String = place
        .instead
        .iter()
        .map(|(name, instead)| format!("{name:?} => {{ {instead} }} "))
        .collect();
    let choice = format!("match crate::planted::defect() {{ {arms}_ => {{ {} }} }}", place.code);
    if place.code.ends_with(';') { choice } else { format!("({choice})") }
}

/// Adds the switch to each library with a defect, and disables warnings about the planted code without
/// moving a line.
fn add_switches(tree: &Tree, planted: &mut BTreeMap<String, String>) {
    let members = manifest::members(tree);
    let member_of = |file: &String| {
        members
            .iter()
            .filter(|member| file.starts_with(&format!("{member}/")))
            .max_by_key(|m| m.len())
    };
    let members: BTreeSet<String> = planted.keys().filter_map(member_of).cloned().collect();
    for member in members {
        let root = format!("{member}/src/lib.rs");
        let text = planted.get(&root).map(String::as_str).or_else(|| tree.text(&root));
        let text = format!("#![allow(warnings)]{}\nmod planted;\n", text.unwrap_or_default());
        planted.insert(root, text);
        planted.insert(format!("{member}/src/planted.rs"), SWITCH.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidy::tree::fixture;

    fn defect(name: &str, file: &str, code: &str, with: &str) -> Defect {
        Defect {
            name: name.to_owned(),
            harm: "none".to_owned(),
            file: file.to_owned(),
            code: code.to_owned(),
            with: with.to_owned(),
            test: "a b".to_owned(),
            hangs: false,
        }
    }

    const TREE: &str = "\
//- Cargo.toml
[workspace]
members = [\"a\"]
//- verify/defects/defects.toml
[[defect]]
name = \"one\"
//- a/src/lib.rs
//! A.
//- a/src/b.rs
fn f() -> u32 {
    g();
    1 + 2
}
";

    fn planted(defects: &[Defect]) -> BTreeMap<String, String> {
        plant(&fixture::parse(TREE), defects).expect("they fit")
    }

    fn findings(defects: &[Defect]) -> Vec<String> {
        let findings = plant(&fixture::parse(TREE), defects).expect_err("one is stale");
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_the_switch_of_an_expression_has_parentheses() {
        let files = planted(&[
            defect("one", "a/src/b.rs", "1 + 2", "3"),
            defect("two", "a/src/b.rs", "g();", ""),
        ]);
        assert_eq!(
            files["a/src/b.rs"],
            "fn f() -> u32 {\n    \
             match crate::planted::defect() { \"two\" => {  } _ => { g(); } }\n    \
             (match crate::planted::defect() { \"one\" => { 3 } _ => { 1 + 2 } })\n}\n"
        );
        assert_eq!(files["a/src/lib.rs"], "#![allow(warnings)]//! A.\n\nmod planted;\n");
        assert_eq!(files["a/src/planted.rs"], SWITCH);
        assert_eq!(files.len(), 3);
    }

    #[test]
    fn a_library_s_root_keeps_its_own_defects_beside_the_switch() {
        let files = planted(&[
            defect("one", "a/src/b.rs", "1 + 2", "3"),
            defect("two", "a/src/lib.rs", "A.", "B."),
        ]);
        let root = &files["a/src/lib.rs"];
        assert!(root.contains("\"two\"") && root.ends_with("mod planted;\n"), "{root}");
    }

    #[test]
    fn defects_of_one_place_share_its_switch() {
        let files = planted(&[
            defect("one", "a/src/b.rs", "1 + 2", "3"),
            defect("two", "a/src/b.rs", "1 + 2", "4"),
        ]);
        let choice = "(match crate::planted::defect() { \
                      \"one\" => { 3 } \"two\" => { 4 } _ => { 1 + 2 } })";
        assert!(files["a/src/b.rs"].contains(choice), "{}", files["a/src/b.rs"]);
    }

    #[test]
    fn a_state_machine_defect_replaces_its_loaded_text() {
        let tree = fixture::parse(
            "//- crates/workflow/src/lib.rs\n//- crates/workflow/src/state_machine.asl.json\n{\"a\": 1}\n\
             //- crates/workflow/src/state_machine.rs\nTEXT.to_owned()",
        );
        let files = plant(&tree, &[defect("one", TEXT, "1", "2")]).expect("it fits");
        assert_eq!(
            files[LOADER],
            "(match crate::planted::defect() { \
             \"one\" => { \"{\\\"a\\\": 2}\\n\".to_owned() } _ => { TEXT.to_owned() } })"
        );
        assert!(!files.contains_key(TEXT), "the text itself stays as it is");
    }

    #[test]
    fn a_stale_place_is_named_with_its_line_in_the_list() {
        for (code, times) in [("1 + 3", 0), ("(", 2)] {
            let found = findings(&[defect("one", "a/src/b.rs", code, "x")]);
            let expected = format!(
                "verify/defects/defects.toml:2: one is stale: its code occurs {times} times in a/src/b.rs, not once"
            );
            assert_eq!(found, [expected]);
        }
        let found = findings(&[defect("one", "a/src/gone.rs", "x", "y")]);
        assert_eq!(
            found,
            ["verify/defects/defects.toml:2: one names a/src/gone.rs, which does not exist"]
        );
    }

    #[test]
    fn defects_that_overlap_are_named() {
        let found = findings(&[
            defect("one", "a/src/b.rs", "1 + 2", "3"),
            defect("two", "a/src/b.rs", "+ 2", "+ 3"),
        ]);
        assert_eq!(found, ["verify/defects/defects.toml:1: two overlaps another defect"]);
        let found = findings(&[
            defect("two", "a/src/b.rs", "1 + 2", "3"),
            defect("one", "a/src/b.rs", "1", "4"),
        ]);
        assert_eq!(
            found,
            ["verify/defects/defects.toml:2: one shares its place with another defect"]
        );
    }
}
