//! The test vectors of `docs/record-format.md` are what the journal computes.

use journal::export::{self, Export};
use journal::item::{Hash, Item};
use journal::payload::{Encoded, Payload, part_items};
use journal::verify::State;

use crate::golden::{at, session};

const PAGE: &str = include_str!("../../../docs/record-format.md");

/// The exported file on the page.
fn file() -> &'static str {
    PAGE.split_once("```jsonl\n").unwrap().1.split_once("```").unwrap().0
}

fn damage(file: &str) -> Vec<String> {
    let report = export::read(file.as_bytes()).unwrap().verify(None, at(0));
    report.damage.iter().map(ToString::to_string).collect()
}

#[track_caller]
pub fn is_on_the_page(text: &str) {
    assert!(PAGE.contains(text), "docs/record-format.md lacks `{text}`");
}

#[track_caller]
fn has_bytes_on_the_page(item: &Item) {
    is_on_the_page(&format!("\n{}\n", String::from_utf8(item.canonical_bytes()).unwrap()));
    is_on_the_page(&format!("`{}`", item.hash()));
}

#[test]
fn the_sample_file_of_the_format_is_sound() {
    let export: Export = export::read(file().as_bytes()).unwrap();
    let report = export.verify(None, at(0));
    let head = export.records[1].hash();
    assert_eq!((report.state, report.damage), (State::Sealed { head }, vec![]));
    let mut written = Vec::new();
    export::write(&session(), &export.records, &mut written).unwrap();
    assert_eq!(written, file().as_bytes());
    let hash = Hash::of(&written);
    is_on_the_page(&format!("has {} bytes and the SHA-256 `{hash}`", written.len()));
    export.records.iter().for_each(has_bytes_on_the_page);
}

#[test]
fn the_sample_part_of_the_format_is_right() {
    let bytes = b"abc".to_vec();
    let payload =
        Payload::Parts { sha256: Hash::of(&bytes), raw_bytes: 3, parts: 1, encrypted: None };
    let parts = part_items(&session(), 1_803_033_000, &Encoded { payload, parts: vec![bytes] });
    has_bytes_on_the_page(&parts[0]);
}

#[test]
fn changes_of_the_sample_file_have_the_listed_damage() {
    let lines: Vec<_> = file().lines().collect();
    let changed = file().replace(r#"{"S":"rejected"}"#, r#"{"S":"completed"}"#);
    for file in [
        lines[..2].join("\n") + "\n" + lines[3],
        changed,
        [lines[1], lines[0], lines[2], lines[3]].join("\n"),
        lines[1..].join("\n"),
        lines[..3].join("\n"),
    ] {
        let damage = damage(&file);
        assert!(!damage.is_empty());
        let listed: Vec<_> = damage.iter().map(|damage| format!("`{damage}`")).collect();
        is_on_the_page(&format!("| {} |", listed.join("<br>")));
    }
}
