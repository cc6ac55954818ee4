//! The implementations of the intrinsic functions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{Function, RANGE_ITEMS_MAX, TEXT_CHARS_MAX};
use crate::digest;
use crate::jsonata::fraction;
use crate::value::equal;

type Result<T = Value> = std::result::Result<T, String>;

/// `draw` returns pseudo-random bytes.
pub(super) fn apply(
    function: Function,
    values: &[Value],
    draw: &mut dyn FnMut() -> [u8; 32],
) -> Result {
    let arguments = Arguments { values };
    match function {
        Function::Array => Ok(Value::Array(values.to_vec())),
        Function::ArrayContains => {
            arguments.count(2)?;
            let found = arguments.array(0)?.iter().any(|item| equal(item, &values[1]));
            Ok(Value::Bool(found))
        }
        Function::ArrayGetItem => {
            arguments.count(2)?;
            let (items, at) = (arguments.array(0)?, arguments.whole(1)?);
            let item = usize::try_from(at).ok().and_then(|at| items.get(at));
            item.cloned().ok_or_else(|| format!("index {at} is out of range"))
        }
        Function::ArrayLength => {
            arguments.count(1)?;
            Ok(Value::from(arguments.array(0)?.len()))
        }
        Function::ArrayPartition => partition(&arguments),
        Function::ArrayRange => range(&arguments),
        Function::ArrayUnique => unique(&arguments),
        Function::Base64Decode => decode(&arguments),
        Function::Base64Encode => {
            arguments.count(1)?;
            Ok(Value::String(STANDARD.encode(arguments.bounded_text(0)?)))
        }
        Function::Format => format_text(&arguments),
        Function::Hash => hash(&arguments),
        Function::JsonMerge => merge(&arguments),
        Function::JsonToString => {
            arguments.count(1)?;
            Ok(Value::String(values[0].to_string()))
        }
        Function::MathAdd => {
            arguments.count(2)?;
            let sum = arguments.whole(0)?.checked_add(arguments.whole(1)?);
            sum.map(Value::from).ok_or_else(|| "the sum is too large".to_owned())
        }
        Function::MathRandom => random(&arguments, draw),
        Function::StringSplit => {
            arguments.count(2)?;
            let delimiters: Vec<char> = arguments.text(1)?.chars().collect();
            let parts = arguments.text(0)?.split(|char| delimiters.contains(&char));
            Ok(parts.filter(|part| !part.is_empty()).map(Value::from).collect())
        }
        Function::StringToJson => {
            arguments.count(1)?;
            let text = arguments.text(0)?;
            if text.trim().is_empty() {
                return Ok(Value::Null);
            }
            serde_json::from_str(text).map_err(|error| format!("argument 1 is not JSON: {error}"))
        }
        Function::Uuid => {
            arguments.count(0)?;
            let mut bytes = [0; 16];
            bytes.copy_from_slice(&draw()[..16]);
            Ok(Value::String(uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()))
        }
    }
}

struct Arguments<'a> {
    values: &'a [Value],
}

impl<'a> Arguments<'a> {
    fn count(&self, count: usize) -> Result<()> {
        match self.values.len() {
            given if given == count => Ok(()),
            given => Err(format!("expected {count} arguments, got {given}")),
        }
    }

    fn get(&self, at: usize) -> Result<&'a Value> {
        self.values.get(at).ok_or_else(|| format!("argument {} is missing", at + 1))
    }

    fn array(&self, at: usize) -> Result<&'a Vec<Value>> {
        let array = self.get(at)?.as_array();
        array.ok_or_else(|| format!("argument {} must be an array", at + 1))
    }

    fn text(&self, at: usize) -> Result<&'a str> {
        let text = self.get(at)?.as_str();
        text.ok_or_else(|| format!("argument {} must be a string", at + 1))
    }

    fn bounded_text(&self, at: usize) -> Result<&'a str> {
        let text = self.text(at)?;
        if text.chars().count() <= TEXT_CHARS_MAX {
            return Ok(text);
        }
        Err(format!("argument {} has more than {TEXT_CHARS_MAX} characters", at + 1))
    }

    /// A whole number. AWS rounds a fraction to the nearest one, and a half up, as Java does: -1.5
    /// becomes -1.
    fn whole(&self, at: usize) -> Result<i64> {
        let value = self.get(at)?;
        let rounded = || value.as_f64().filter(|number| number.abs() < i64::MAX as f64);
        let whole =
            value.as_i64().or_else(|| rounded().map(|number| (number + 0.5).floor() as i64));
        whole.ok_or_else(|| format!("argument {} must be a number", at + 1))
    }
}

fn hash(arguments: &Arguments<'_>) -> Result {
    arguments.count(2)?;
    let text = match arguments.get(0)? {
        Value::String(_) => arguments.bounded_text(0)?.to_owned(),
        other => other.to_string(),
    };
    digest::hex(arguments.text(1)?, &text).map(Value::String)
}

fn unique(arguments: &Arguments<'_>) -> Result {
    arguments.count(1)?;
    let mut unique: Vec<Value> = Vec::new();
    for item in arguments.array(0)? {
        if !unique.iter().any(|known| equal(known, item)) {
            unique.push(item.clone());
        }
    }
    Ok(Value::Array(unique))
}

fn decode(arguments: &Arguments<'_>) -> Result {
    arguments.count(1)?;
    let bytes = STANDARD.decode(arguments.bounded_text(0)?);
    let bytes = bytes.map_err(|error| format!("argument 1 is not Base64: {error}"))?;
    String::from_utf8(bytes)
        .map(Value::String)
        .map_err(|_| "argument 1 does not encode UTF-8".to_owned())
}

fn partition(arguments: &Arguments<'_>) -> Result {
    arguments.count(2)?;
    let size = usize::try_from(arguments.whole(1)?).unwrap_or_default();
    if size == 0 {
        return Err("argument 2 must be a positive number".to_owned());
    }
    let parts = arguments.array(0)?.chunks(size);
    Ok(parts.map(|part| Value::Array(part.to_vec())).collect())
}

fn range(arguments: &Arguments<'_>) -> Result {
    arguments.count(3)?;
    let (first, last, step) = (arguments.whole(0)?, arguments.whole(1)?, arguments.whole(2)?);
    if step == 0 {
        return Err("argument 3 must not be zero".to_owned());
    }
    let count = (i128::from(last) - i128::from(first)) / i128::from(step) + 1;
    let reversed = (last > first) != (step > 0) && last != first;
    if reversed {
        return Ok(Value::Array(Vec::new()));
    }
    if count > i128::from(RANGE_ITEMS_MAX) {
        return Err(format!("more than {RANGE_ITEMS_MAX} items"));
    }
    Ok((0..count as i64).map(|index| Value::from(first + index * step)).collect())
}

fn merge(arguments: &Arguments<'_>) -> Result {
    arguments.count(3)?;
    let object = |at: usize| -> Result<&Map<String, Value>> {
        let object = arguments.get(at)?.as_object();
        object.ok_or_else(|| format!("argument {} must be an object", at + 1))
    };
    if arguments.get(2)? != &Value::Bool(false) {
        return Err("argument 3 must be false: only shallow merging is supported".to_owned());
    }
    let mut merged = object(0)?.clone();
    for (name, value) in object(1)? {
        merged.insert(name.clone(), value.clone());
    }
    Ok(Value::Object(merged))
}

fn random(arguments: &Arguments<'_>, draw: &mut dyn FnMut() -> [u8; 32]) -> Result {
    let (first, end) = (arguments.whole(0)?, arguments.whole(1)?);
    if end <= first {
        return Err("argument 2 must be greater than argument 1".to_owned());
    }
    let bytes = match arguments.values.len() {
        2 => draw(),
        _ => {
            let seed = arguments.whole(2)?.to_string();
            crate::token::digest(&["States.MathRandom", &seed])
        }
    };
    let width = (i128::from(end) - i128::from(first)) as f64;
    let drawn = (fraction(&bytes) * width) as i128 + i128::from(first);
    Ok(Value::from(drawn as i64))
}

fn format_text(arguments: &Arguments<'_>) -> Result {
    let template = arguments.text(0)?;
    let mut values = arguments.values[1..].iter();
    let mut text = String::with_capacity(template.len());
    let mut chars = template.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\\' if matches!(chars.peek(), Some('{' | '}' | '\\')) => text.extend(chars.next()),
            '{' if chars.peek() == Some(&'}') => {
                chars.next();
                let value = values.next().ok_or("more placeholders than values")?;
                spell(value, &mut text);
            }
            char => text.push(char),
        }
    }
    match values.next() {
        None => Ok(Value::String(text)),
        Some(_) => Err("more values than placeholders".to_owned()),
    }
}

/// Formats a value as Java does, because Step Functions does: `{a=1, b=[x, y]}`.
fn spell(value: &Value, text: &mut String) {
    match value {
        Value::String(inner) => text.push_str(inner),
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                text.push_str(if at == 0 { "" } else { ", " });
                spell(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push('{');
            for (at, (name, field)) in fields.iter().enumerate() {
                text.push_str(if at == 0 { "" } else { ", " });
                text.push_str(name);
                text.push('=');
                spell(field, text);
            }
            text.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => text.push_str(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::super::Call;
    use crate::expression::Scope;
    use crate::time::Timestamp;

    fn call(text: &str) -> String {
        let root = json!({"a": [1, 2, 2.0], "t": "x", "o": {"k": null}});
        let (variables, context) = (BTreeMap::new(), || json!({}));
        let now = Timestamp::from_millis(0);
        let mut scope = Scope::new(&root, &variables, &context, now, "seed".to_owned());
        match Call::compile(text).unwrap() {
            Ok(call) => match call.evaluate(&mut scope, &root, "f.$") {
                Ok(value) => value.to_string(),
                Err(fault) => fault.cause,
            },
            Err(error) => error.problem,
        }
    }

    #[test]
    fn intrinsic_functions_match_their_documentation() {
        for (text, expected) in [
            ("States.Array($.t, 1, null, States.Array())", r#"["x",1,null,[]]"#),
            ("States.ArrayContains($.a, 2)", "true"),
            ("States.ArrayUnique($.a)", "[1,2]"),
            ("States.ArrayRange(1, 9, 2)", "[1,3,5,7,9]"),
            ("States.ArrayRange(3, 1, -1)", "[3,2,1]"),
            ("States.ArrayRange(3, 1, 1)", "[]"),
            ("States.Base64Decode(States.Base64Encode($.t))", r#""x""#),
            ("States.Format('\\{\\} it\\'s {} of {}', $.t, $.o)", r#""{} it's x of {k=null}""#),
            ("States.Hash('input data', 'SHA-1')", r#""aaff4a450a104cd177d28d18d74485e8cae074b7""#),
            ("States.Hash('abc', 'MD5')", r#""900150983cd24fb0d6963f7d28e17f72""#),
            ("States.JsonMerge($.o, $.o, false)", r#"{"k":null}"#),
            ("States.MathAdd(1, -2.4)", "-1"),
            ("States.MathAdd(-1.5, 0.5)", "0"),
            ("States.MathAdd(-2.51, 2.5)", "0"),
            ("States.ArrayRange(-0.5, 2.5, 1.4)", "[0,1,2,3]"),
            ("States.MathRandom(3, 4)", "3"),
            ("States.StringSplit('a.b+c', '.+')", r#"["a","b","c"]"#),
        ] {
            assert_eq!(call(text), expected, "{text}");
        }
        assert_eq!(call("States.MathRandom(1, 99, 7)"), call("States.MathRandom(1, 99, 7)"));
    }

    #[test]
    fn an_invalid_intrinsic_call_names_the_problem() {
        for (text, expected) in [
            ("States.Nothing()", "unknown function 'Nothing'"),
            ("States.Array(1", "expected ',' or ')'"),
            ("States.Array(1))", "unexpected ')' after the call"),
            ("States.Array(x)", "invalid argument 'x'"),
            (
                "States.ArrayLength($.t)",
                "The function 'States.ArrayLength' failed: argument 1 must be an array.",
            ),
            (
                "States.ArrayRange(1, 5000, 1)",
                "The function 'States.ArrayRange' failed: more than 1000 items.",
            ),
            (
                "States.JsonMerge($.o, $.o, true)",
                "The function 'States.JsonMerge' failed: argument 3 must be false: only shallow merging is supported.",
            ),
            (
                "States.Format('{}')",
                "The function 'States.Format' failed: more placeholders than values.",
            ),
        ] {
            assert_eq!(call(text), expected, "{text}");
        }
        let deep = "States.Array(".repeat(11);
        assert_eq!(call(&deep), "calls nested more than 10 levels deep");
    }
}
