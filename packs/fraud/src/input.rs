//! The input of the agent.

use graph::definition::InputError;
use serde_json::Value;

/// The input schema as JSON text.
pub const INPUT_SCHEMA: &str = r#"{
  "type": "object",
  "required": ["transaction_id", "data"],
  "additionalProperties": false,
  "properties": {
    "transaction_id": {"type": "string", "minLength": 1, "maxLength": 64},
    "data": {
      "type": "string", "minLength": 1, "maxLength": 4096,
      "description": "a CSV or Parquet file, or the address of a transaction service"
    },
    "mode": {"enum": ["FULL"]}
  }
}"#;

/// Longest id, in characters.
const ID_CHARS_MAX: usize = 64;

/// Longest path or address, in characters.
const DATA_CHARS_MAX: usize = 4_096;

/// The only mode: all tools.
const MODE: &str = "FULL";

/// Parses the transaction's id. Only the server reads the location of the data.
///
/// # Errors
/// If the input is invalid; the error names the field.
pub fn transaction_id(input: &Value) -> Result<String, InputError> {
    let Value::Object(fields) = input else {
        return Err(InputError::new("input", "an object with transaction_id and data"));
    };
    let known = ["transaction_id", "data", "mode"];
    if let Some(name) = fields.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(InputError::new(name, "only `transaction_id`, `data` and `mode`"));
    }
    let text = |name: &str, chars_max: usize, expected: &str| {
        let text = fields.get(name).and_then(Value::as_str);
        let fits = |text: &&str| (1..=chars_max).contains(&text.chars().count());
        let text = text.filter(fits).filter(|text| !text.chars().any(char::is_control));
        text.map(str::to_owned).ok_or_else(|| InputError::new(name, expected))
    };
    text("data", DATA_CHARS_MAX, "the path of a CSV or Parquet file, or a service's address")?;
    if fields.get("mode").is_some_and(|mode| mode != MODE) {
        return Err(InputError::new("mode", "FULL"));
    }
    text("transaction_id", ID_CHARS_MAX, "a transaction's id, of 1 to 64 characters")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_input_that_is_none_names_its_field() {
        let good = json!({"transaction_id": "t1", "data": "a.csv", "mode": "FULL"});
        assert_eq!(transaction_id(&good).as_deref(), Ok("t1"));
        for (input, field) in [
            (json!([]), "input"),
            (json!({"data": "a.csv"}), "transaction_id"),
            (json!({"transaction_id": "", "data": "a.csv"}), "transaction_id"),
            (json!({"transaction_id": "a\u{1b}", "data": "a.csv"}), "transaction_id"),
            (json!({"transaction_id": 7, "data": "a.csv"}), "transaction_id"),
            (json!({"transaction_id": "t1"}), "data"),
            (json!({"transaction_id": "t1", "data": "a.csv", "mode": "FAST"}), "mode"),
            (json!({"transaction_id": "t1", "data": "a.csv", "is_fraud": true}), "is_fraud"),
        ] {
            assert_eq!(transaction_id(&input).unwrap_err().path, field, "{input}");
        }
    }
}
