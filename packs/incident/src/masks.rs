//! Masks secrets and personal data in what the agent reads, before a model or the journal gets it.
//!
//! A masked value becomes `[masked: KIND]`. Rules can only know shapes: a secret without a known shape or
//! name passes.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

/// The option of a session with more patterns: an object of names and regular expressions.
pub const OPTION: &str = "mask_patterns";

/// Most patterns of the configuration.
pub const PATTERNS_MAX: usize = 20;

/// Largest compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;

/// The start of a mask.
const MASK: &str = "[masked: ";

/// A rule: its kind, and a pattern. A group named `secret` is masked, else the whole match.
struct Rule {
    kind: String,
    pattern: Regex,
}

/// The rules that ship, the most specific first.
///
/// Sources: RFC 7468 (private keys), RFC 7519 (JWT), IAM User Guide, "IAM identifiers" (access key ids),
/// RFC 3986 (user information in URLs), RFC 5321 (mailboxes), ISO/IEC 7812 (card numbers), the token
/// formats that GitHub, GitLab, Slack, Stripe and Google publish for secret scanning.
const RULES: [(&str, &str); 9] = [
    (
        "private key",
        r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)",
    ),
    ("token", r"\bey[JK][A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)*"),
    (
        "token",
        r"(?:\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|(?:sk|rk|pk)_(?:live|test)_|sk-|npm_|hf_)[A-Za-z0-9_-]{10,}|\bAIza[A-Za-z0-9_-]{30,})",
    ),
    ("token", r"(?i)\b(?:bearer|basic)\s+(?P<secret>[A-Za-z0-9._~+/-]{8,}=*)"),
    ("AWS key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7][A-Z0-9]{15}"),
    ("password", r"(?i)\b[a-z][a-z0-9+.-]*://[^\s:/@]*:(?P<secret>[^\s/]+)@"),
    (
        "secret",
        r#"(?i)(?:pass(?:word|wd|phrase)?|pwd|secret(?:[_ -]?access)?(?:[_ -]?key)?|api[_ -]?key|access[_ -]?token|auth[_ -]?token|refresh[_ -]?token|session[_ -]?token|client[_ -]?secret|private[_ -]?key)\\*["']?\s*(?:=>|[:=])\s*\\*["']?(?P<secret>[^\s"'\\,;&}\]]+)"#,
    ),
    ("email", r"(?i)[a-z0-9._%+'-]+(?:@|%40)[a-z0-9-]+(?:\.[a-z0-9-]+)+"),
    ("card number", r"[0-9](?:[ -]?[0-9]){12,}"),
];

fn rules() -> &'static [Rule] {
    static COMPILED: OnceLock<Vec<Rule>> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let rule = |(kind, pattern): &(&str, &str)| {
            let pattern = Regex::new(pattern).expect("a pattern of this crate compiles");
            Rule { kind: (*kind).to_owned(), pattern }
        };
        RULES.iter().map(rule).collect()
    })
}

/// Reads the patterns of the configuration: an object of names and regular expressions.
pub fn patterns(text: &str) -> Option<Value> {
    let patterns: Map<String, Value> = serde_json::from_str(text).ok()?;
    let is_valid = |pattern: &Value| pattern.as_str().is_some_and(|text| compiled(text).is_some());
    (patterns.len() <= PATTERNS_MAX && patterns.values().all(is_valid)).then_some(patterns.into())
}

fn compiled(pattern: &str) -> Option<Regex> {
    let regex = regex::RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build().ok()?;
    // A pattern that matches nothing would mask between all characters.
    (!regex.is_match("")).then_some(regex)
}

/// Masks all texts of a value, names of members included.
pub fn mask(options: &Value, value: &mut Value) {
    let own = options.get(OPTION).and_then(Value::as_object).into_iter().flatten();
    let own: Vec<Rule> = own
        .filter_map(|(kind, pattern)| {
            Some(Rule { kind: kind.clone(), pattern: compiled(pattern.as_str()?)? })
        })
        .collect();
    mask_value(&own, value);
}

fn mask_value(own: &[Rule], value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(masked) = mask_text(own, text) {
                *text = masked;
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(|element| mask_value(own, element)),
        Value::Object(members) => {
            let named = std::mem::take(members).into_iter();
            members.extend(named.map(|(name, mut member)| {
                mask_member(own, &name, &mut member);
                (mask_text(own, &name).unwrap_or(name), member)
            }));
        }
        Value::Number(number) => {
            let text = number.to_string();
            if is_card(&text) {
                *value = json!(masked("card number"));
            }
        }
        _ => {}
    }
}

/// A text under a name such as `password` is a secret, whatever its shape.
fn mask_member(own: &[Rule], name: &str, member: &mut Value) {
    const NAMES: [&str; 9] = [
        "password",
        "passwd",
        "pwd",
        "secret",
        "apikey",
        "accesstoken",
        "secretaccesskey",
        "sessiontoken",
        "clientsecret",
    ];
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let is_secret = NAMES.contains(&plain.to_ascii_lowercase().as_str());
    match member {
        Value::String(text) if is_secret && !text.is_empty() && !text.starts_with(MASK) => {
            *text = masked("secret");
        }
        member => mask_value(own, member),
    }
}

/// The masked text; `None` if nothing is masked.
fn mask_text(own: &[Rule], text: &str) -> Option<String> {
    let mut now = text.to_owned();
    for rule in own.iter().chain(rules()) {
        let replaced =
            rule.pattern.replace_all(&now, |found: &Captures<'_>| replacement(rule, found));
        if replaced != now {
            now = replaced.into_owned();
        }
    }
    (now != text).then_some(now)
}

fn replacement(rule: &Rule, found: &Captures<'_>) -> String {
    let whole = &found[0];
    match found.name("secret") {
        _ if rule.kind == "card number" && !has_card(whole) => whole.to_owned(),
        Some(secret) if secret.as_str().starts_with("[masked:") => whole.to_owned(),
        Some(secret) => {
            let start = found.get(0).map_or(0, |whole| whole.start());
            let (from, until) = (secret.start() - start, secret.end() - start);
            format!("{}{}{}", &whole[..from], masked(&rule.kind), &whole[until..])
        }
        None => masked(&rule.kind),
    }
}

fn masked(kind: &str) -> String {
    format!("{MASK}{kind}]")
}

/// Most groups that a card number is written in: each digit by itself.
const CARD_GROUPS_MAX: usize = 19;

/// Whether groups of digits next to one another are a card number.
fn has_card(text: &str) -> bool {
    let groups: Vec<&str> = text.split([' ', '-']).collect();
    (0..groups.len()).any(|from| {
        let mut digits = String::new();
        groups[from..].iter().take(CARD_GROUPS_MAX).any(|group| {
            digits.push_str(group);
            is_card(&digits)
        })
    })
}

/// Whether the digits are a card number: 13 to 19, with a valid check digit.
///
/// Source: ISO/IEC 7812-1, annex B (Luhn).
fn is_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    if !(13..=19).contains(&digits.len()) || !matches!(digits[0], 2..=6) {
        return false;
    }
    let doubled = |(place, digit): (usize, &u32)| match digit * 2 {
        _ if place % 2 == 0 => *digit,
        twice @ 0..=9 => twice,
        twice => twice - 9,
    };
    digits.iter().rev().enumerate().map(doubled).sum::<u32>() % 10 == 0
}

/// How often each kind was masked in a value.
pub fn said(value: &Value) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    count(value, &mut counts);
    counts
}

fn count(value: &Value, counts: &mut BTreeMap<String, usize>) {
    match value {
        Value::String(text) => {
            for (_, rest) in text.match_indices(MASK).map(|(at, _)| text.split_at(at + MASK.len()))
            {
                let Some((kind, _)) = rest.split_once(']') else { continue };
                *counts.entry(kind.to_owned()).or_default() += 1;
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| count(element, counts)),
        Value::Object(members) => members.values().for_each(|member| count(member, counts)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> String {
        let mut value = json!(text);
        mask(&Value::Null, &mut value);
        value.as_str().unwrap().to_owned()
    }

    /// Sources: the documents that the rules name; the card numbers are the schemes' test numbers, the
    /// AWS keys those of AWS's examples.
    const SECRETS: [&str; 20] = [
        "dana.scully+x@fbi.example.org",
        "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE",
        "4111 1111 1111 1111",
        "5555-5555-5555-4444",
        "378282246310005",
        "6011111111111117",
        "3530111333300000",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "glpat-abcdefghij0123456789",
        "xoxb-123456789012-abcdefghijkl",
        "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
        "postgres://app:hunter2@db.example:5432/x",
        "amqp://u:p%40ss@mq/x",
        "Server=db;Password=hunter2;Database=x",
        "{\"password\": \"hunter2\"}",
        "aws_secret_access_key=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "Authorization: Bearer abcdef0123456789",
    ];

    /// The part of each that must be gone.
    fn core(secret: &str) -> &str {
        for part in ["hunter2", "p%40ss", "wJalrXUtnFEMI", "abcdef0123456789", "MIIEow"] {
            if secret.contains(part) {
                return part;
            }
        }
        secret
    }

    #[test]
    fn every_kind_is_masked() {
        for secret in SECRETS {
            let masked = of(secret);
            assert!(masked.contains(MASK), "{secret}: {masked}");
            assert!(!masked.contains(core(secret)), "{secret}: {masked}");
        }
    }

    #[test]
    fn what_a_diagnosis_needs_is_kept() {
        for text in [
            "User: arn:aws:sts::123456789012:assumed-role/data-role/f is not authorized to perform: s3:GetObject on resource: arn:aws:s3:::bucket/key",
            "START RequestId: 8f507cfc-xmpl-4697-b07a-ac58fc914c95 Version: $LATEST",
            "1790000000000",
            "2026-11-24T01:02:03.000Z",
            "connect ETIMEDOUT 10.42.17.86:5432",
            "https://s3.amazonaws.com/b?x=1",
            "sg-0c9e51b7f28ad4360",
            "4111111111111112",
            "AccessDenied: token expired",
        ] {
            assert_eq!(of(text), text);
        }
    }

    #[test]
    fn a_key_that_was_cut_off_is_masked_to_its_end() {
        assert_eq!(of("x -----BEGIN PRIVATE KEY-----\nMIIE"), "x [masked: private key]");
    }

    #[test]
    fn members_numbers_and_names_are_masked() {
        let mut value =
            json!({"db": {"Password": "x y"}, "card": 4111111111111111_u64, "a@b.example": 1});
        mask(&Value::Null, &mut value);
        assert_eq!(
            value,
            json!({"db": {"Password": "[masked: secret]"}, "card": "[masked: card number]", "[masked: email]": 1})
        );
        assert_eq!(
            said(&value),
            BTreeMap::from([("secret".to_owned(), 1), ("card number".to_owned(), 1)])
        );
    }

    #[test]
    fn own_patterns_are_masked_too() {
        let options = json!({OPTION: patterns(r#"{"employee": "E[0-9]{6}"}"#).unwrap()});
        let mut value = json!("E123456 and a@b.example");
        mask(&options, &mut value);
        assert_eq!(value, json!("[masked: employee] and [masked: email]"));
        for invalid in [r#"{"a": "("}"#, r#"{"a": ""}"#, r#"{"a": "x*"}"#, r#"{"a": 1}"#, "[]", "x"]
        {
            assert_eq!(patterns(invalid), None, "{invalid}");
        }
    }

    proptest! {
        /// In any surrounding, as a text or as JSON text in a text, and a second time.
        #[test]
        fn no_masked_kind_survives(
            before in "[ -~]{0,20}",
            after in "[ -~]{0,20}",
            which in 0..SECRETS.len(),
            is_nested: bool,
        ) {
            let secret = SECRETS[which];
            let line = format!("{before} {secret} {after}");
            let line = if is_nested { json!({"message": line}).to_string() } else { line };
            let masked = of(&line);
            prop_assert!(!masked.contains(core(secret)), "{} -> {}", line, masked);
        }
    }
}
