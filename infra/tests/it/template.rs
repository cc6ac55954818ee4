//! Golden templates and queries on them.

use std::path::PathBuf;

use serde_json::Value;

/// The path of a golden template.
pub fn kept(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden").join(name)
}

pub fn read(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(kept(name)).unwrap()).unwrap()
}

/// The resources of a type, with their logical ids.
pub fn of_type<'a>(
    template: &'a Value,
    kind: &'a str,
) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let resources = template["Resources"].as_object().unwrap();
    let wanted = move |(_, resource): &(&String, &Value)| resource["Type"] == kind;
    resources.iter().filter(wanted).map(|(name, resource)| (name.as_str(), &resource["Properties"]))
}

/// A value with deployment tokens replaced: account 123456789012 in eu-west-1.
pub fn resolved(value: &Value) -> Value {
    let Value::Object(members) = value else {
        return match value {
            Value::Array(values) => values.iter().map(resolved).collect(),
            other => other.clone(),
        };
    };
    let text = match members.iter().next().map(|(key, value)| (key.as_str(), value)) {
        Some(("Ref", name)) => Some(match name.as_str().unwrap() {
            "AWS::Partition" => "aws".to_owned(),
            "AWS::Region" => "eu-west-1".to_owned(),
            "AWS::AccountId" => "123456789012".to_owned(),
            other => format!("<{other}>"),
        }),
        Some(("Fn::GetAtt", path)) => {
            Some(format!("<{}.{}>", path[0].as_str().unwrap(), path[1].as_str().unwrap()))
        }
        Some(("Fn::Join", parts)) => {
            let parts = resolved(&parts[1]);
            Some(parts.as_array().unwrap().iter().map(|part| part.as_str().unwrap()).collect())
        }
        _ => None,
    };
    match text {
        Some(text) if members.len() == 1 => text.into(),
        _ => Value::Object(
            members.iter().map(|(key, value)| (key.clone(), resolved(value))).collect(),
        ),
    }
}
