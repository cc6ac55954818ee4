//! The default conclusion: any result as facts, findings and tables.
//!
//! The fields `summary` (a text or a list of texts) and `findings` (texts or objects) have a meaning. A
//! list of objects becomes a table, any other field a fact. Deeper nested values are shown as JSON.

use serde_json::{Map, Value};

use super::{COLUMNS_MAX, Cell, Conclusion, Fact, Finding, ITEMS_MAX, Note, Table};

/// Deepest object whose fields become separate facts.
const DEPTH_MAX: usize = 2;

/// Longest JSON text of a nested value, in characters.
const JSON_CHARS_MAX: usize = 300;

/// Longest text that is a fact; a longer one is a note.
const FACT_CHARS_MAX: usize = 200;

/// The conclusion for any result.
pub fn conclude(result: &Value) -> Conclusion {
    let mut conclusion = Conclusion { title: "Result", ..Conclusion::default() };
    match result {
        Value::Object(fields) => add_fields(&mut conclusion, "", fields, 0),
        Value::Array(items) => add_list(&mut conclusion, "items", items),
        other => conclusion.summary = plain(other),
    }
    conclusion
}

fn add_fields(to: &mut Conclusion, prefix: &str, fields: &Map<String, Value>, depth: usize) {
    for (key, value) in fields.iter().take(ITEMS_MAX + 1) {
        let name = format!("{prefix}{}", key.replace('_', " "));
        match value {
            Value::Null => {}
            Value::String(text) if depth == 0 && key == "summary" => to.summary = text.clone(),
            Value::Array(items) if depth == 0 && key == "summary" && is_texts(items) => {
                to.summary = items.iter().map(plain).collect::<Vec<_>>().join("\n");
            }
            Value::Array(items) if depth == 0 && key == "findings" => {
                to.findings = findings(items);
            }
            Value::Array(items) => add_list(to, &name, items),
            Value::Object(fields) if depth < DEPTH_MAX && !fields.is_empty() => {
                add_fields(to, &format!("{name} "), fields, depth + 1);
            }
            other => add_fact(to, name, plain(other)),
        }
    }
}

fn add_fact(to: &mut Conclusion, name: String, value: String) {
    if value.chars().nth(FACT_CHARS_MAX).is_none() && !value.contains('\n') {
        to.facts.push(Fact { name, value, ..Fact::default() });
    } else {
        let lines = value.lines().take(ITEMS_MAX + 1).map(str::to_owned).collect();
        to.notes.push(Note { title: name, lines, ..Note::default() });
    }
}

fn add_list(to: &mut Conclusion, name: &str, items: &[Value]) {
    let items = &items[..items.len().min(ITEMS_MAX + 1)];
    if items.iter().any(Value::is_object) {
        to.tables.push(table(name, items));
    } else if !items.is_empty() {
        let texts: Vec<_> = items.iter().map(plain).collect();
        add_fact(to, name.to_owned(), texts.join(", "));
    }
}

/// A table with a column per field, in order of first occurrence.
fn table(name: &str, items: &[Value]) -> Table {
    let mut keys: Vec<&str> = Vec::new();
    for key in items.iter().filter_map(Value::as_object).flat_map(Map::keys) {
        if keys.len() < COLUMNS_MAX && !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    let row = |item: &Value| -> Vec<Cell> {
        match item {
            Value::Object(fields) => keys
                .iter()
                .map(|key| fields.get(*key).map(plain).unwrap_or_default().into())
                .collect(),
            other => vec![plain(other).into()],
        }
    };
    Table {
        rows: items.iter().map(row).collect(),
        columns: keys.iter().map(|key| key.replace('_', " ")).collect(),
        title: name.to_owned(),
    }
}

fn findings(items: &[Value]) -> Vec<Finding> {
    let finding = |(at, item): (usize, &Value)| {
        let text = match item {
            Value::Object(fields) => {
                let parts = fields.iter().filter(|(_, value)| !value.is_null());
                let parts = parts.take(COLUMNS_MAX).map(|(name, value)| match value {
                    Value::String(text) => text.clone(),
                    other => format!("{} {}", name.replace('_', " "), plain(other)),
                });
                parts.collect::<Vec<_>>().join(" · ")
            }
            other => plain(other),
        };
        Finding { text, claim: Some(format!("/findings/{at}")), ..Finding::default() }
    };
    items.iter().take(ITEMS_MAX + 1).enumerate().map(finding).collect()
}

fn is_texts(items: &[Value]) -> bool {
    items.len() <= ITEMS_MAX && items.iter().all(Value::is_string)
}

/// A text unchanged, any other value as short JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => {
            let mut json = other.to_string();
            super::clip(&mut json, JSON_CHARS_MAX);
            json
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn any_result_becomes_facts_findings_and_tables() {
        let found = conclude(&json!({
            "summary": ["Three files are gone.", "The rest fits."],
            "findings": ["a.log was the largest", {"bytes": 7, "file": "b.log"}],
            "freed_bytes": 512, "is_done": true, "nothing": null,
            "limits": {"bytes_max": 1024, "per": {"day": {"x": 1}}},
            "names": ["a", "b"],
            "deleted": [{"file": "a.log", "bytes": 505}, {"file": "b.log", "by": "ops"}],
        }));
        assert_eq!(found.summary, "Three files are gone.\nThe rest fits.");
        let texts: Vec<_> = found.findings.iter().map(|finding| finding.text.as_str()).collect();
        assert_eq!(texts, ["a.log was the largest", "bytes 7 · b.log"]);
        let facts: Vec<_> =
            found.facts.iter().map(|fact| format!("{}: {}", fact.name, fact.value)).collect();
        assert_eq!(
            facts,
            [
                "freed bytes: 512",
                "is done: true",
                "limits bytes max: 1024",
                "limits per day: {\"x\":1}",
                "names: a, b",
            ]
        );
        let [table] = &found.tables[..] else { panic!("{found:#?}") };
        assert_eq!((table.title.as_str(), table.rows.len()), ("deleted", 2));
        assert_eq!((found.title, found.verdict), ("Result", None));
    }

    #[test]
    fn a_result_that_is_no_object_is_shown_too() {
        assert_eq!(conclude(&json!("done")).summary, "done");
        assert_eq!(conclude(&json!(7)).summary, "7");
        assert_eq!(conclude(&json!([{"a": 1}])).tables.len(), 1);
        assert_eq!(conclude(&json!(["a", "b"])).facts[0].value, "a, b");
    }
}
