//! The texts that a schema leaves to choose from, wherever in it they are listed.

use serde_json::Value;

/// Most schemas that are looked at for one argument. A server may have written one that refers to
/// itself.
const SCHEMAS_MAX: usize = 256;

/// The texts that an argument may be, in the order of the schema; none where it may be any.
///
/// References within the tool's own schema are followed; those to elsewhere are not, for schemas are
/// never fetched.
pub(super) fn choices<'a>(property: &'a Value, schema: &'a Value) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut waiting = vec![property];
    for _ in 0..SCHEMAS_MAX {
        let Some(next) = waiting.pop() else { break };
        let referred = next.get("$ref").and_then(Value::as_str);
        let within = referred.and_then(|to| schema.pointer(to.strip_prefix('#')?));
        let listed = next.get("enum").and_then(Value::as_array).into_iter().flatten();
        let texts = listed.chain(next.get("const")).filter_map(Value::as_str);
        found.extend(texts.take(SCHEMAS_MAX));
        let parts =
            ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|of| next.get(of)?.as_array());
        let parts: Vec<&Value> = parts.flatten().chain(within).take(SCHEMAS_MAX).collect();
        // The first part is looked at first.
        waiting.extend(parts.into_iter().rev());
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_found_wherever_a_schema_lists_them() {
        let schema = json!({ "$defs": {
            "Plain": { "enum": ["bgp", "isis", "all"] },
            "Told": { "oneOf": [
                { "const": "bgp", "description": "Between systems." },
                { "const": "isis" },
                { "enum": ["all"] },
            ]},
            "Further": { "$ref": "#/$defs/Plain" },
        }});
        for property in [
            json!({ "enum": ["bgp", "isis", "all"] }),
            json!({ "enum": ["bgp", 7, "isis", null, "all"] }),
            json!({ "$ref": "#/$defs/Plain" }),
            json!({ "$ref": "#/$defs/Told", "description": "Which." }),
            json!({ "anyOf": [{ "$ref": "#/$defs/Further" }, { "type": "null" }] }),
            json!({ "allOf": [{ "$ref": "#/$defs/Told" }] }),
        ] {
            assert_eq!(choices(&property, &schema), ["bgp", "isis", "all"], "{property}");
        }
    }

    #[test]
    fn a_schema_that_is_of_no_use_leaves_nothing_to_choose_from_and_ends() {
        let schema = json!({ "$defs": {
            "Own": { "$ref": "#/$defs/Own" },
            "Many": { "anyOf": [{ "$ref": "#/$defs/Many" }, { "$ref": "#/$defs/Many" }] },
        }});
        for property in [
            json!({ "type": "string" }),
            json!({ "$ref": "#/$defs/Own" }),
            json!({ "$ref": "#/$defs/Many" }),
            json!({ "$ref": "#/$defs/Absent" }),
            json!({ "$ref": "http://example.com/schema" }),
            json!({ "enum": "bgp" }),
            json!(null),
        ] {
            assert_eq!(choices(&property, &schema), Vec::<&str>::new(), "{property}");
        }
    }
}
