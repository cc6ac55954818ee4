//! Compares values with recordings in which changing values are masked; the recordings' README has
//! the rules.

use serde_json::Value;

/// The first difference from the recorded value, if any.
pub fn difference(
    recorded: &Value,
    actual: &Value,
    masks: &[String],
    path: &str,
) -> Option<String> {
    let differs = || Some(format!("{path}: recorded {recorded}, actual {actual}"));
    match (recorded, actual) {
        (Value::String(text), _) if masks.contains(text) => None,
        (Value::String(text), Value::String(actual)) if fits(text, actual, masks) => None,
        // A function's error is JSON text that the recorder parsed; its whitespace is lost.
        (Value::String(text), Value::String(actual))
            if text.starts_with('{') && actual.starts_with('{') =>
        {
            let parse = |text: &str| serde_json::from_str(text).unwrap_or_default();
            let (recorded, actual): (Value, Value) = (parse(text), parse(actual));
            if recorded.is_null() || actual.is_null() {
                return differs();
            }
            difference(&recorded, &actual, masks, path)
        }
        (Value::Array(recorded), Value::Array(actual)) => {
            if recorded.first().and_then(Value::as_str) == Some("<stack-trace>") {
                return None;
            }
            if recorded.len() != actual.len() {
                return differs();
            }
            let pairs = recorded.iter().zip(actual).enumerate();
            pairs
                .map(|(at, (recorded, actual))| {
                    difference(recorded, actual, masks, &format!("{path}/{at}"))
                })
                .find_map(|found| found)
        }
        (Value::Object(recorded), Value::Object(actual)) => {
            if recorded.len() != actual.len() {
                return differs();
            }
            recorded.iter().find_map(|(name, recorded)| {
                let found = actual.get(name).or_else(|| {
                    actual
                        .iter()
                        .find(|(actual, _)| fits(name, actual, masks))
                        .map(|(_, value)| value)
                });
                match found {
                    Some(actual) => difference(recorded, actual, masks, &format!("{path}/{name}")),
                    None => Some(format!("{path}/{name}: missing")),
                }
            })
        }
        (Value::Number(recorded), Value::Number(actual))
            if recorded.as_f64() == actual.as_f64() =>
        {
            None
        }
        _ if recorded == actual => None,
        _ => differs(),
    }
}

/// Whether a text equals a recorded one, with any text in place of the masks.
fn fits(recorded: &str, actual: &str, masks: &[String]) -> bool {
    let pieces = pieces(recorded, masks);
    let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return false };
    if pieces.len() == 1 {
        return recorded == actual;
    }
    let Some(mut rest) = actual.strip_prefix(first) else { return false };
    for piece in &pieces[1..pieces.len() - 1] {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The pieces of a text between its masks.
fn pieces<'a>(text: &'a str, masks: &[String]) -> Vec<&'a str> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let (bytes, mut pieces, mut from, mut at) = (text.as_bytes(), Vec::new(), 0, 0);
    while at < text.len() {
        let stands = |mask: &&String| {
            let end = at + mask.len();
            let alone = mask.starts_with('<')
                || ((at == 0 || !word(bytes[at - 1]))
                    && bytes.get(end).is_none_or(|next| !word(*next)));
            !mask.is_empty() && bytes[at..].starts_with(mask.as_bytes()) && alone
        };
        match masks.iter().filter(stands).max_by_key(|mask| mask.len()) {
            Some(mask) => {
                pieces.push(&text[from..at]);
                at += mask.len();
                from = at;
            }
            None => at += 1,
        }
    }
    pieces.push(&text[from..]);
    pieces
}

#[test]
fn masks_match_any_text() {
    let masks: Vec<String> = ["<uuid:1>", "date", "111111111111"].map(str::to_owned).into();
    let check = |recorded: &str, actual: &str, expected| {
        assert_eq!(fits(recorded, actual, &masks), expected, "{recorded}")
    };
    check("a <uuid:1> b", "a x b", true);
    check("a <uuid:1> b", "a x c", false);
    check("from date to date", "from 1\n to 2", true);
    check("update", "anything", false);
    check("arn:111111111111:x", "arn:000000000000:x", true);
    check("plain", "plain", true);
    check("plain", "plainer", false);
}
