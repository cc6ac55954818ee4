//! Whether values have the form that AWS or the stack accepts.

use super::STAGE_CHARS_MAX;

pub(super) fn is_stage(value: &str) -> bool {
    let of = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=STAGE_CHARS_MAX).contains(&value.len())
        && value.starts_with(|c: char| c.is_ascii_lowercase())
        && !value.ends_with('-')
        && value.chars().all(of)
}

pub(super) fn is_name(value: &str) -> bool {
    let of = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    (1..=64).contains(&value.len())
        && value.starts_with(|c: char| c.is_ascii_alphanumeric())
        && value.chars().all(of)
}

pub(super) fn is_model(value: &str) -> bool {
    let of = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
    // A server's own names may have more.
    let of_server = |c: char| of(c) || "/+@".contains(c);
    let fits =
        |id: &str, of: &dyn Fn(char) -> bool| (1..=256).contains(&id.len()) && id.chars().all(of);
    match value.split_once(':') {
        Some(("bedrock", id)) => fits(id, &of),
        Some(("openai", name)) => fits(name, &of_server),
        _ => false,
    }
}

pub(super) fn is_log_group(value: &str) -> bool {
    let of = |c: char| c.is_ascii_alphanumeric() || ".-_/#".contains(c);
    (1..=512).contains(&value.len()) && value.chars().all(of)
}

/// A pattern that matches everybody's ARN is not one.
pub(super) fn is_person(value: &str) -> bool {
    let of = |c: char| c.is_ascii_alphanumeric() || ".-_/+=@:*".contains(c);
    let parts: Vec<_> = value.splitn(6, ':').collect();
    let [head, partition, service, "", account, name] = parts[..] else { return false };
    let named = name.strip_prefix("role/").or_else(|| name.strip_prefix("user/"));
    (head, service) == ("arn", "iam")
        && partition.starts_with("aws")
        && account.len() == 12
        && account.bytes().all(|b| b.is_ascii_digit())
        && named.is_some_and(|name| !name.is_empty() && name != "*")
        && value.chars().all(of)
}

pub(super) fn is_agent(value: &str) -> bool {
    packs::find(value).is_some()
}

pub(super) fn is_email(value: &str) -> bool {
    let parts = value.split_once('@');
    parts.is_some_and(|(name, domain)| !name.is_empty() && domain.contains('.'))
        && !value.contains(char::is_whitespace)
}

pub(super) fn is_parameter(value: &str) -> bool {
    let of = |c: char| c.is_ascii_alphanumeric() || ".-_/".contains(c);
    (2..=1011).contains(&value.len()) && value.starts_with('/') && value.chars().all(of)
}

pub(super) fn is_link(value: &str) -> bool {
    value.strip_prefix("https://").is_some_and(|rest| {
        !rest.is_empty() && rest.chars().all(|c| c.is_ascii_alphanumeric() || "-._~:/".contains(c))
    })
}
