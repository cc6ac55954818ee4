//! Reads a result leniently: an older version or a model may have written it in another form.

use serde_json::Value;

use super::ITEMS_MAX;

/// The text in a field.
pub fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field)?.as_str()
}

/// The list in a field, empty if absent. A long list is cut to one item more than viewers show.
pub fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    let list = value.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    &list[..list.len().min(ITEMS_MAX + 1)]
}

/// The texts of the list in a field.
pub fn texts<'a>(value: &'a Value, field: &str) -> Vec<&'a str> {
    list(value, field).iter().filter_map(Value::as_str).collect()
}

/// A share from 0 to 1 in thousandths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1000")]
pub fn permille(value: &Value, field: &str) -> Option<u16> {
    let share = value.get(field)?.as_f64()?;
    Some((share.clamp(0.0, 1.0) * 1_000.0).round() as u16)
}

/// Thousandths as `81.7 %`.
pub fn percent(permille: u16) -> String {
    format!("{}.{} %", permille / 10, permille % 10)
}
