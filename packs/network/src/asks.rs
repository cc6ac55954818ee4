//! What a sentence asks: the names in it, and how many there should be.

use super::interpret::words;
use super::lexicon;
use super::query::{is_interface, normal_interface};

/// Words of numbers.
const NUMBERS: &[(&str, usize)] = &[
    ("two", 2),
    ("both", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("eleven", 11),
    ("twelve", 12),
];

/// Largest number that is a count of parts.
const COUNT_MAX: usize = 512;

/// Minimum number of parts in order that count as redundant.
const REDUNDANT_MIN: usize = 2;

/// How far after a number its noun stands, in words.
const REACH: usize = 3;

/// What a number can count.
const PARTS: &[&str] = &[
    "neighbor",
    "neighbour",
    "session",
    "adjacency",
    "peer",
    "member",
    "uplink",
    "link",
    "interface",
    "port",
    "reflector",
    "server",
    "supply",
    "fan",
    "tunnel",
    "sensor",
];

/// Units and other nouns that a number does not count parts of.
const UNITS: &[&str] = &[
    "percent", "hour", "minute", "second", "day", "week", "byte", "vlan", "end", "side", "vrf",
    "area", "level",
];

/// Words of what should be off, and of what should be at all.
const SWITCHED_OFF: &[&str] =
    &["shut", "shutdown", "disabled", "blocked", "denied", "removed", "closed", "unused"];
const NEGATED: &[&str] = &["not", "never", "down", "inactive", "idle"];
const WANTED: &[&str] = &["that", "should", "must", "ensure", "verify", "confirm", "sure"];

/// Whether a sentence asks for something to be off or absent. No rule judges that.
pub(super) fn wants_off(sentence: &str) -> bool {
    let said = words(sentence);
    let has = |list: &[&str]| said.iter().any(|word| list.contains(&word.as_str()));
    let is_search = has(&["any", "no", "which"]);
    !is_search && (has(SWITCHED_OFF) || has(NEGATED) && has(WANTED))
}

/// What a sentence asks about its subjects.
pub(super) struct Ask {
    /// The subjects before a colon, which explanations follow.
    pub head: Vec<&'static str>,
    pub subjects: Vec<&'static str>,
    pub attributes: Vec<&'static str>,
    /// Whether what it asks about may be absent.
    pub is_optional: bool,
    pub is_general: bool,
}

/// The number of parts that the sentence says there should be.
pub(super) fn count(sentence: &str, is_redundant: bool) -> Option<usize> {
    let said = words(sentence);
    let number = |word: &str| {
        let by_word = NUMBERS.iter().find(|(name, _)| *name == word).map(|(_, number)| *number);
        by_word.or_else(|| word.parse().ok()).filter(|number| (2..=COUNT_MAX).contains(number))
    };
    let is_of_parts = |at: usize| {
        let next = said.iter().skip(at + 1).take(REACH);
        let mut nouns = next.take_while(|word| !UNITS.contains(&word.as_str()));
        let is_last =
            at + 1 == said.len() && said.iter().any(|word| word == "should" || word == "must");
        is_last || nouns.any(|word| PARTS.contains(&word.as_str()))
    };
    let counted = said.iter().enumerate().filter(|(at, _)| is_of_parts(*at));
    let found = counted.filter_map(|(_, word)| number(word)).max();
    let is_about_both = !said.iter().any(|word| ["end", "side"].contains(&word.as_str()));
    found.or_else(|| (is_redundant && is_about_both).then_some(REDUNDANT_MIN))
}

/// The names in a sentence: words that are neither ordinary nor of the trade, nor the device's own name.
pub(super) fn names(sentence: &str, said: &[String], device_name: &str) -> Vec<String> {
    let unknown = lexicon::unknown(said);
    let devices: Vec<String> = device_name.to_lowercase().split(", ").map(str::to_owned).collect();
    let is_own = |word: &str| {
        devices.iter().any(|device| word == device || Some(word) == device.split('.').next())
    };
    let trimmed = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        word.strip_suffix("'s")
            .or_else(|| word.strip_suffix("’s"))
            .map_or(word.clone(), str::to_owned)
    };
    let all: Vec<String> =
        sentence.split_whitespace().map(trimmed).filter(|word| !word.is_empty()).collect();
    let is_measure = |at: usize| {
        let next = all.get(at + 1).map_or(String::new(), |word| words(word).concat());
        let has_unit = sentence.contains(&format!("{}%", all[at]));
        all[at].parse::<f64>().is_ok() && (has_unit || UNITS[..6].contains(&next.as_str()))
    };
    let is_counted = |at: usize| {
        let next = all.iter().skip(at + 1).take(REACH).map(|word| words(word).concat());
        all[at].parse::<usize>().is_ok_and(|number| number >= 2)
            && next.take(REACH).any(|word| PARTS.contains(&word.as_str()))
    };
    let is_name = |at: &usize| {
        let parts = words(&all[*at]);
        parts.iter().any(|part| unknown.contains(&part.as_str()))
            && !is_own(&all[*at])
            && !is_measure(*at)
            && !is_counted(*at)
    };
    (0..all.len()).filter(is_name).map(|at| all[at].clone()).collect()
}

/// Whether these words of an object have this name, as a whole.
pub(super) fn has(tokens: &[String], name: &str) -> bool {
    let is_same = |token: &String| {
        token == name || is_interface(name) && normal_interface(token) == normal_interface(name)
    };
    tokens.iter().any(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_says_how_many_there_should_be() {
        for (sentence, expected) in [
            ("Are all four OSPF neighbors full?", Some(4)),
            ("Check that 3 BGP sessions are up", Some(3)),
            ("Check the IS-IS adjacencies: there should be two.", Some(2)),
            ("Compare the MTU at both ends of the link", None),
            ("under 90 percent", None),
            ("Check the ports of VLAN 10", None),
            ("the last 60 minutes of the sessions", None),
        ] {
            assert_eq!(count(sentence, false), expected, "{sentence}");
        }
        assert_eq!(count("Is the uplink redundant?", true), Some(2));
    }

    #[test]
    fn a_sentence_may_want_something_off() {
        for (sentence, expected) in [
            ("Is Gi0/2 shut down?", true),
            ("Make sure that BGP is not established with 10.9.9.9", true),
            ("Are any ports blocked?", false),
            ("Is BGP down?", false),
            ("Check that every session is up", false),
            ("and no unplanned restart should be there", false),
        ] {
            assert_eq!(wants_off(sentence), expected, "{sentence}");
        }
    }

    #[test]
    fn names_are_whole_words() {
        let of = |sentence: &str| names(sentence, &words(sentence), "r1");
        assert_eq!(of("Is r1's session with 10.0.0.3 up?"), ["10.0.0.3"]);
        assert_eq!(of("Is VLAN 10 active on r1?"), ["10"]);
        assert_eq!(of("Is the OSPF of r1 fine?"), [""; 0]);
        let tokens = ["10.0.0.30".to_owned(), "gigabitethernet0/1".to_owned()];
        assert!(!has(&tokens, "10.0.0.3"));
        assert!(has(&tokens, "gi0/1"));
        assert!(!has(&tokens, "gi0/10"));
    }
}
