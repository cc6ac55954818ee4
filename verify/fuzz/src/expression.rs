//! DynamoDB expressions: no text and no placeholders crash the evaluator, and results follow the
//! laws of logic.
//!
//! An input that starts with `{` is a request: a `FilterExpression` with placeholders, and an
//! `Item` to evaluate it on. From any other input the grammar generates a condition, which reaches
//! deeper than mutated characters.

use journal::item::Item;
use serde_json::{Value, json};
use stack::dynamodb::ApiError;
use stack::dynamodb::expression::ast::Condition;
use stack::dynamodb::expression::lexer::{Kind, WHITE_SPACE, tokens};
use stack::dynamodb::expression::placeholders::Placeholders;
use stack::dynamodb::expression::{assignments, condition, projection};
use stack::dynamodb::number::Number;
use stack::dynamodb::request::Request;
use stack::dynamodb::value::AttributeValue;

use crate::cursor::Cursor;

const FILTER: &str = "FilterExpression";

/// Longest part of an error message other than quoted input, in bytes.
const ERROR_WORDS_BYTES_MAX: usize = 1_000;

/// Deepest nesting of a generated condition.
const GENERATED_LEVELS_MAX: usize = 6;

/// Checks a request, or the condition generated from the bytes.
///
/// # Panics
/// A promise is broken.
pub fn check(bytes: &[u8]) {
    if bytes.first() == Some(&b'{') {
        let Ok(request) = serde_json::from_slice::<Value>(bytes) else { return };
        let item = request.get("Item").and_then(|item| Item::from_json(item).ok());
        let text = request.get(FILTER).and_then(Value::as_str).unwrap_or_default();
        judge(bytes, text, &item.unwrap_or_else(sample));
    } else {
        let mut cursor = Cursor::new(bytes);
        let mut text = String::new();
        generate(&mut cursor, GENERATED_LEVELS_MAX, &mut text);
        judge(request(&text).to_string().as_bytes(), &text, &sample());
    }
}

/// Every operator and function, rejected expressions with their reason, and numbers at their
/// limits.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = [
        "S = :s",
        "S <> :n AND N < :n OR NOT B >= :b",
        "#a BETWEEN :n AND :m",
        "S IN (:s, :n, :b)",
        "attribute_exists(Gone.inner[0].#a) OR attribute_not_exists(S)",
        "attribute_type(S, :type) AND begins_with(S, :s) AND contains(S, :s)",
        "size(S) > :n",
        "((S = :s))",
        "NOT NOT (S = :s)",
        "a.b.c[99999999999] = :s",
        "Status = :s",
        "SET S = :s, N = :n",
        "REMOVE S",
        "S, N, B",
        "size(size(S)) = :n",
        "contains(:l, S) OR contains(:ss, :s)",
        "S\u{c}= :s",
    ]
    .iter()
    .map(|text| request(text).to_string().into_bytes())
    .collect();
    seeds.push(request(&format!("{}S = :s", "NOT ".repeat(101))).to_string().into_bytes());
    seeds.push(request(&"(".repeat(200)).to_string().into_bytes());
    seeds.push(request(&"size(".repeat(200)).to_string().into_bytes());
    let mut numbers = request("N = :n");
    for (place, number) in
        ["9.9E+125", "-1e-130", "0.00", "+1", "1e2147483647", "-9223372036854775808"]
            .iter()
            .enumerate()
    {
        numbers["ExpressionAttributeValues"][format!(":n{place}")] = json!({ "N": number });
    }
    seeds.push(numbers.to_string().into_bytes());
    seeds.extend((0..8_u8).map(|first| (first..first + 60).collect()));
    seeds
}

fn request(text: &str) -> Value {
    json!({
        FILTER: text,
        "ExpressionAttributeNames": { "#a": "N", "#b": "Status", "#c": "" },
        "ExpressionAttributeValues": {
            ":s": { "S": "abc" }, ":p": { "S": "a" }, ":n": { "N": "3" }, ":m": { "N": "1e1" },
            ":b": { "B": "AAE=" }, ":t": { "BOOL": true }, ":null": { "NULL": true },
            ":type": { "S": "SS" }, ":l": { "L": [{ "S": "abc" }, { "N": "3" }] },
            ":map": { "M": { "a": { "S": "abc" } } }, ":ss": { "SS": ["abc", "b"] },
            ":ns": { "NS": ["3", "4.0"] }, ":bs": { "BS": ["AAE="] },
        },
    })
}

fn sample() -> Item {
    Item::new("SESSION#a", "STEP#00000001")
        .with("S", "abc")
        .with("E", "")
        .with("N", 3_i64)
        .with("M", -10_i64)
        .with("B", vec![0, 1])
        .with("Status", "abcé")
}

fn generate(cursor: &mut Cursor<'_>, levels: usize, text: &mut String) {
    let inner = levels.saturating_sub(1);
    match if levels == 0 || cursor.is_at_end() { 9 } else { cursor.below(16) } {
        operator @ (0 | 1) => {
            generate_in_parentheses(cursor, inner, text);
            text.push_str([" AND ", " or "][operator]);
            generate(cursor, inner, text);
        }
        2 => {
            text.push_str("NOT ");
            generate(cursor, inner, text);
        }
        3 => generate_in_parentheses(cursor, inner, text),
        4 => {
            let (value, low, high) = (operand(cursor), operand(cursor), operand(cursor));
            text.push_str(&format!("{value} BETWEEN {low} AND {high}"));
        }
        5 => {
            let value = operand(cursor);
            let options: Vec<_> = (0..=cursor.below(4)).map(|_| operand(cursor)).collect();
            text.push_str(&format!("{value} IN ({})", options.join(",")));
        }
        6 | 7 => {
            let function = cursor.one_of(&["attribute_exists", "attribute_not_exists", "size"]);
            text.push_str(&format!("{function}({})", operand(cursor)));
        }
        8 => {
            let function = cursor.one_of(&["begins_with", "contains", "attribute_type"]);
            text.push_str(&format!("{function}({}, {})", operand(cursor), operand(cursor)));
        }
        _ => {
            let comparator = cursor.one_of(&["=", "<>", "<", "<=", ">", ">="]);
            text.push_str(&format!("{} {comparator} {}", operand(cursor), operand(cursor)));
        }
    }
}

fn generate_in_parentheses(cursor: &mut Cursor<'_>, levels: usize, text: &mut String) {
    text.push('(');
    generate(cursor, levels, text);
    text.push(')');
}

fn operand(cursor: &mut Cursor<'_>) -> &'static str {
    cursor.one_of(&[
        "S", "E", "N", "M", "B", "#a", "#b", "PK", "Gone", "S.a", "N[0]", "size(S)", "size(B)",
        "size(N)", ":s", ":p", ":n", ":m", ":b", ":t", ":null", ":type", ":l", ":map", ":ss",
        ":ns", ":bs", ":gone", "size(:l)", "(S)", "(:n)",
    ])
}

/// Checks all promises for a text with a request's placeholders. `body` is the request.
fn judge(body: &[u8], text: &str, item: &Item) {
    check_tokens(text);
    let Ok(request) = Request::parse(body) else { return };
    check_values(body);
    let placeholders = || Placeholders::read(&request, &[FILTER], &[FILTER]);
    let Ok(mut given) = placeholders() else { return };
    let read = |text: &str| match placeholders() {
        Ok(mut placeholders) => condition(FILTER, text, &mut placeholders),
        Err(error) => Err(error),
    };
    let bounded = |error: &ApiError| {
        assert_eq!(error.status, 400);
        assert!(error.message.len() <= 8 * body.len() + ERROR_WORDS_BYTES_MAX, "{error}");
    };
    if let Err(error) = projection(text, &mut given).map(|projection| projection.of(item)) {
        bounded(&error);
    }
    if let Err(error) = assignments(text, &mut given) {
        bounded(&error);
    }
    let found = match read(text) {
        Ok(found) => found,
        Err(error) => {
            let again = read(text).map_err(|error| error.to_string());
            assert_eq!(again, Err(error.to_string()));
            return bounded(&error);
        }
    };
    assert_eq!(read(text).ok().as_ref(), Some(&found));
    let holds = found.holds(item);
    assert_eq!(found.holds(item), holds);
    let law = |text: &str, expected: bool| match read(text) {
        Ok(found) => assert_eq!(found.holds(item), expected, "{text}"),
        Err(error) => assert!(is_limit(&error), "{text}: {error}"),
    };
    law(&format!("NOT ({text})"), !holds);
    law(&format!("NOT (NOT ({text}))"), holds);
    law(&format!("({text}) AND ({text})"), holds);
    law(&format!("({text}) AND (NOT ({text}))"), false);
    law(&format!("({text}) OR (NOT ({text}))"), true);
    assert_eq!(
        Condition::All(vec![found.clone(), found.clone()]).paths().len(),
        2 * found.paths().len()
    );
}

/// Whether a longer text is rejected only because of the text around it.
fn is_limit(error: &ApiError) -> bool {
    ["exceeded the maximum", "redundant parentheses", "nested too deeply", "too many operators"]
        .iter()
        .any(|limit| error.message.contains(limit))
}

/// Tokens cover the text except its whitespace.
fn check_tokens(text: &str) {
    let tokens = tokens(text);
    let mut at = 0;
    for token in &tokens {
        let blank = |text: &str| text.trim_start_matches(WHITE_SPACE).is_empty();
        assert!(token.start >= at && token.start <= token.end);
        assert!(blank(&text[at..token.start]));
        assert_eq!(token.kind == Kind::End, blank(&text[token.start..token.end]));
        at = token.end;
    }
    assert_eq!(at, text.len());
    assert_eq!(tokens.iter().filter(|token| token.kind == Kind::End).count(), 1);
}

/// Values and numbers are equal in any spelling, and have one order.
fn check_values(body: &[u8]) {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let values = request.get("ExpressionAttributeValues").and_then(Value::as_object);
    let values: Vec<_> = values
        .into_iter()
        .flat_map(|values| values.values())
        .filter_map(|value| AttributeValue::from_json(value).ok())
        .take(16)
        .collect();
    for value in &values {
        if let Some(stored) = value.stored() {
            assert_eq!(AttributeValue::from(stored), *value);
        }
        if let AttributeValue::N(number) = value {
            assert_eq!(Number::parse(&number.to_string()).as_ref(), Ok(number));
        }
        for other in &values {
            let order = value.order(other);
            assert_eq!(other.order(value), order.map(std::cmp::Ordering::reverse));
            assert!(order.is_none_or(|order| order.is_eq() == (value == other)));
        }
    }
}
