//! Reads access lists as devices print them.
//!
//! Sources: Cisco IOS, IOS XR and NX-OS, `show access-lists`; Arista EOS, `show ip access-lists`.

use serde_json::{Value, json};

use super::columns::Block;

/// Beginnings of the line above the rules, in lower case.
const HEADS: &[&str] = &[
    "extended ip access list ",
    "standard ip access list ",
    "ip access list ",
    "ipv6 access list ",
    "ipv4 access-list ",
    "ipv6 access-list ",
    "mac access list ",
    "role-based ip access list ",
];

/// Lines after which rules without a number of packets matched none.
const COUNTED: &[&str] = &["counters per-entry", "statistics per-entry"];

/// Words before an address.
const HOST: &str = "host";

/// Words of a port.
const PORTS: &[&str] = &["eq", "gt", "lt", "neq", "range"];

/// An access list that starts at the first of these lines.
pub(super) fn block(lines: &[&str]) -> Option<Block> {
    let head = lines.first()?.trim();
    let small = head.to_lowercase();
    let beginning = HEADS.iter().find(|beginning| small.starts_with(*beginning))?;
    let name = head[beginning.len()..].split_whitespace().next()?;
    // IOS and IOS XR print only numbers above zero.
    let mut is_counted =
        !small.starts_with("ip access list") && !small.starts_with("ipv6 access list ");
    let mut used = 1;
    let mut rules = Vec::new();
    for line in &lines[1..] {
        let text = line.trim();
        if COUNTED.iter().any(|words| text.eq_ignore_ascii_case(words)) {
            is_counted = true;
        } else if let Some(rule) = rule(text, is_counted) {
            rules.push(rule);
        } else if !text.is_empty() && !is_remark(text) {
            break;
        }
        used += 1;
    }
    let list = json!([{"name": name, "rules": rules}]);
    Some(Block { lines: used, shown: vec![("access_lists", list)] })
}

fn is_remark(text: &str) -> bool {
    let mut words = text.split_whitespace();
    words.next().is_some_and(|word| word == "remark" || word.parse::<u32>().is_ok())
        && (text.starts_with("remark") || words.next() == Some("remark"))
}

/// `10 permit tcp 10.0.0.0/8 host 10.1.1.1 eq 443 (7 matches)`.
fn rule(text: &str, is_counted: bool) -> Option<Value> {
    let end = text.find(['[', '(']).unwrap_or(text.len());
    let hits = hits(&text[end..]).or_else(|| is_counted.then_some(0));
    let mut words = text[..end].split_whitespace().peekable();
    let sequence = words.next_if(|word| word.parse::<u64>().is_ok());
    let action = words.next().filter(|word| ["permit", "deny"].contains(word))?;
    let rest: Vec<&str> = words.collect();
    // A standard list has a source only.
    let starts = |word: &str| word == "any" || word == HOST || word.contains(['.', ':', '/']);
    let (protocol, rest) = match rest.split_first() {
        Some((first, after)) if !starts(first) => (*first, after),
        _ => ("ip", &rest[..]),
    };
    let (source, source_port, rest) = end_of(rest);
    let (destination, port, _) = end_of(rest);
    let mut rule = json!({"action": action, "protocol": protocol, "source": source,
        "destination": if destination.is_empty() { "any" } else { destination.as_str() }});
    let more = [
        ("sequence", sequence.map(Value::from)),
        ("source_port", source_port.map(Value::from)),
        ("port", port.map(Value::from)),
        ("hits", hits.map(Value::from)),
    ];
    for (name, value) in more {
        if let Some(value) = value {
            rule[name] = value;
        }
    }
    Some(rule)
}

/// An address, its port, and what follows.
fn end_of<'a>(words: &'a [&'a str]) -> (String, Option<String>, &'a [&'a str]) {
    let is_mask = |word: &&str| word.contains('.') && !word.contains('/');
    let (address, mut rest) = match words {
        [HOST, address, rest @ ..] => ((*address).to_owned(), rest),
        [address, mask, rest @ ..]
            if address.contains('.') && is_mask(mask) && !address.contains('/') =>
        {
            (format!("{address} {mask}"), rest)
        }
        [address, rest @ ..] => ((*address).to_owned(), rest),
        [] => (String::new(), words),
    };
    let mut port = None;
    if let [word, after @ ..] = rest
        && PORTS.contains(word)
    {
        let many = if *word == "range" { 2 } else { 1 };
        let many = many.min(after.len());
        port = Some(format!("{word} {}", after[..many].join(" ")));
        rest = &after[many..];
    }
    (address, port, rest)
}

/// `(7 matches)`, `[match=7]`, `[match 7 packets, 0:00:02 ago]`, `(7 hw matches)`.
fn hits(text: &str) -> Option<u64> {
    let small = text.to_lowercase();
    if !small.contains("match") {
        return None;
    }
    let mut parts = small.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    parts.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let lines: Vec<&str> = text.lines().collect();
        let block = block(&lines).unwrap();
        assert_eq!(block.lines, lines.len(), "{text}");
        let said = |rule: &Value| {
            let of = |name: &str| match &rule[name] {
                Value::String(text) => text.clone(),
                Value::Null => "-".to_owned(),
                other => other.to_string(),
            };
            ["action", "protocol", "source", "destination", "port", "hits"].map(of).join("|")
        };
        let rules: Vec<String> =
            block.shown[0].1[0]["rules"].as_array().unwrap().iter().map(said).collect();
        assert_eq!(rules, expected, "{text}");
    }

    #[test]
    fn rules_and_their_counters_are_read() {
        check(
            "Extended IP access list EDGE-IN\n\
             \x20   10 permit tcp 10.0.0.0 0.255.255.255 host 10.1.1.1 eq www (77 matches)\n\
             \x20   20 deny ip any any",
            &["permit|tcp|10.0.0.0 0.255.255.255|10.1.1.1|eq www|77", "deny|ip|any|any|-|0"],
        );
        check(
            "Standard IP access list 10\n    10 permit 10.0.0.9\n    20 deny   any (3 matches)",
            &["permit|ip|10.0.0.9|any|-|0", "deny|ip|any|any|-|3"],
        );
        check(
            "IP access list EDGE\n        statistics per-entry\n        10 remark block telnet\n        \
             20 deny tcp any any eq 23 [match=0]\n        30 permit ip any any [match=9]",
            &["deny|tcp|any|any|eq 23|0", "permit|ip|any|any|-|9"],
        );
        check(
            "IP Access List EDGE\n        counters per-entry\n        \
             10 permit tcp 10.0.0.0/8 any range 80 90 [match 881 packets, 0:00:02 ago]\n        \
             20 deny ip any any log",
            &["permit|tcp|10.0.0.0/8|any|range 80 90|881", "deny|ip|any|any|-|0"],
        );
        check(
            "ipv4 access-list EDGE\n 10 permit icmp any any (12 hw matches)",
            &["permit|icmp|any|any|-|12"],
        );
    }

    /// EOS and NX-OS count only if they are told to.
    #[test]
    fn a_rule_that_is_not_counted_has_no_number() {
        check(
            "IP Access List EDGE\n        10 deny tcp any any eq 23",
            &["deny|tcp|any|any|eq 23|-"],
        );
    }
}
