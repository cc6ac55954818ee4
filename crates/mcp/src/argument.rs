//! String arguments of bounded length. A refusal names the argument and the accepted form.

use std::ops::RangeInclusive;

use serde_json::Value;

/// Longest string, in characters; far longer than any name, path or unit.
const TEXT_CHARS_MAX: usize = 128;

/// A string argument of bounded length.
pub fn text(name: &str, form: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) if (1..=TEXT_CHARS_MAX).contains(&text.chars().count()) => Ok(text),
        other => Err(wrong(name, form, &other)),
    }
}

/// A whole number in a range.
pub fn whole(name: &str, range: RangeInclusive<u32>, value: &Value) -> Result<u32, String> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.filter(|number| range.contains(number)).ok_or_else(|| {
        let form = format!("a whole number from {} to {}", range.start(), range.end());
        wrong(name, &form, value)
    })
}

/// Words the refusal of an argument, with a quote of the value's beginning.
pub fn wrong(name: &str, form: &str, value: &Value) -> String {
    let sent: String = value.to_string().chars().take(TEXT_CHARS_MAX).collect();
    format!("{name} must be {form}, not {sent}")
}

/// Declares an argument's type, which a function parses from a JSON value.
#[macro_export]
macro_rules! argument {
    ($(#[$meta:meta])* $name:ident($inner:ty), $parse:expr) => {
        $(#[$meta])*
        #[derive(Debug, Clone, ::serde::Deserialize)]
        #[serde(try_from = "::serde_json::Value")]
        pub(super) struct $name(pub $inner);

        impl TryFrom<::serde_json::Value> for $name {
            type Error = String;

            fn try_from(value: ::serde_json::Value) -> Result<Self, String> {
                let parse: fn(::serde_json::Value) -> Result<$inner, String> = $parse;
                parse(value).map(Self)
            }
        }
    };
}
