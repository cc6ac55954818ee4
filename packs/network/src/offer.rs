//! Reads the list of devices that a server offers.

use serde_json::Value;

/// Lists the devices; the only tool that the agent knows by name.
pub(super) const GET_DEVICES: &str = "get_devices";

/// Maximum number of devices taken from a list.
const DEVICES_MAX: usize = 1_000;

const DEVICE_CHARS_MAX: usize = 64;

/// The device names in the answer of [`GET_DEVICES`]. Accepts a list of strings or of objects with
/// a name, at the top level or in any member, or an object with one member per device.
pub(super) fn devices(content: &Value) -> Vec<String> {
    let parsed = content.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let content = parsed.as_ref().unwrap_or(content);
    let list =
        content.as_array().or_else(|| content.as_object()?.values().find_map(Value::as_array));
    let names: Vec<String> = match (list, content.as_object()) {
        (Some(list), _) => list.iter().filter_map(name).collect(),
        (None, Some(members)) => {
            let one = (members.len() == 1).then(|| members.values().next()).flatten();
            let members = one.and_then(Value::as_object).unwrap_or(members);
            let devices = members.iter().filter(|(_, value)| value.is_object());
            devices.map(|(name, _)| name.clone()).collect()
        }
        (None, None) => Vec::new(),
    };
    names.into_iter().filter(|name| is_name(name)).take(DEVICES_MAX).collect()
}

fn name(device: &Value) -> Option<String> {
    let of = |member: &str| device.get(member)?.as_str();
    let name = device
        .as_str()
        .or_else(|| ["name", "device_name", "hostname", "device", "id"].into_iter().find_map(of));
    name.map(str::to_owned)
}

fn is_name(name: &str) -> bool {
    (1..=DEVICE_CHARS_MAX).contains(&name.chars().count())
        && name.chars().all(|c| c.is_alphanumeric() || "-_.:".contains(c))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn devices_are_read_from_every_usual_form() {
        for content in [
            json!(["a1", "b2"]),
            json!([{"name": "a1"}, {"hostname": "b2"}]),
            json!({"devices": [{"name": "a1"}, {"device_name": "b2"}], "count": 2}),
            json!({"result": ["a1", "b2"]}),
            json!({"a1": {"ip": "10.0.0.1"}, "b2": {}}),
            json!({"devices": {"a1": {}, "b2": {}}}),
            json!("[\"a1\", \"b2\"]"),
        ] {
            assert_eq!(devices(&content), ["a1", "b2"], "{content}");
        }
        for content in [json!(null), json!("two devices"), json!({"error": "x"}), json!([1, {}])] {
            assert_eq!(devices(&content), Vec::<String>::new(), "{content}");
        }
        assert_eq!(devices(&json!(["ok", "no good", "x\ny", ""])), ["ok"]);
    }
}
