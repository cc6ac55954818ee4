//! Generic crates name no pack: a pack describes itself.

use super::manifest;
use super::sizes::{is_tests, lines_before_tests};
use crate::tree::{Finding, Tree};

/// The folders of the generic crates.
const GENERIC: &[&str] = &["crates/", "journal/", "agent/", "invoker/", "poller/"];

/// Packs whose name is an ordinary word. It counts only if it is the whole string literal, or quoted in
/// it.
const ORDINARY: &[&str] = &["assistant", "network"];

/// Every pack.
const ANY: &str = "*";

/// Files, or folders with a `/` at the end, that may name a pack: path, pack, reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("agent/src/model/openai/wire.rs", "assistant", "a role in a chat"),
    ("agent/src/model/transcript.rs", "assistant", "a role in a chat"),
    ("crates/graph/src/program.rs", "assistant", "a role in a chat"),
    ("crates/views/src/testing.rs", "assistant", "an agent in records for tests"),
];

pub(crate) fn findings(tree: &Tree) -> Vec<Finding> {
    judge(tree, ALLOWED)
}

fn judge(tree: &Tree, allowed: &[(&str, &str, &str)]) -> Vec<Finding> {
    let packs = packs(tree);
    let mut found = Vec::new();
    let mut used = vec![false; allowed.len()];
    for (path, text) in tree.iter().filter(|(path, _)| is_generic(path)) {
        for (line, pack) in named(text, &packs) {
            let exception = allowed.iter().position(|(allowed, of, _)| {
                let is_here =
                    path == *allowed || allowed.ends_with('/') && path.starts_with(allowed);
                is_here && (*of == ANY || *of == pack)
            });
            match exception {
                Some(index) => used[index] = true,
                None => found.push(Finding::new(
                    path,
                    line,
                    format!("names the pack {pack}: let its profile say this, or take the agent as a value"),
                )),
            }
        }
    }
    for ((path, _, reason), _) in allowed.iter().zip(used).filter(|(_, used)| !used) {
        let what = format!("{path} ({reason}) needs no exception any more: remove it from ALLOWED");
        found.push(Finding::new("verify/tidy/src/rules/packs.rs", 1, what));
    }
    found
}

fn is_generic(path: &str) -> bool {
    (path.ends_with(".rs") || path.ends_with(".js"))
        && GENERIC.iter().any(|folder| path.starts_with(folder))
        && !is_tests(path)
        && !path.contains("/examples/")
        && !path.contains("/template/")
}

/// The names of agents and MCP servers: the crates in `packs` with a function `agent()`, and the crates
/// below them that depend on `rmcp`.
fn packs(tree: &Tree) -> Vec<String> {
    let name = |member: &String| {
        let inside = member.strip_prefix("packs/")?;
        let is_pack = match inside.split_once('/') {
            None => {
                let root = tree.text(&format!("{member}/src/lib.rs"))?;
                root.contains("pub fn agent()")
            }
            Some(_) => {
                let path = format!("{member}/Cargo.toml");
                let manifest = manifest::parse(tree, &path).ok()?;
                let text = tree.text(&path)?;
                let dependencies = manifest::dependencies(&manifest, text);
                dependencies.iter().any(|dependency| !dependency.dev && dependency.name == "rmcp")
            }
        };
        is_pack.then(|| inside.rsplit('/').next().unwrap_or(inside).to_owned())
    };
    manifest::members(tree).iter().filter_map(name).collect()
}

/// The packs that a source file names before its tests, with the lines.
fn named<'a>(text: &str, packs: &'a [String]) -> Vec<(usize, &'a str)> {
    let end = lines_before_tests(text);
    let tokens = tokens(text).into_iter().filter(|(line, _)| *line <= end);
    let mut found = Vec::new();
    for (line, token) in tokens {
        let is_named = |pack: &&String| match token {
            Token::Crate(name) => name == pack.replace('-', "_"),
            Token::Text(text) => is_in(text, pack),
        };
        found.extend(packs.iter().filter(is_named).map(|pack| (line, pack.as_str())));
    }
    found
}

/// Whether a text names a pack.
fn is_in(text: &str, pack: &str) -> bool {
    let is_ordinary = ORDINARY.contains(&pack);
    let in_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let quote = |c: char| matches!(c, '"' | '\'' | '`' | '\\');
    text.match_indices(pack).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + pack.len()..].chars().next();
        let is_word = !before.is_some_and(in_word) && !after.is_some_and(in_word);
        let is_whole = before.is_none() && after.is_none();
        let is_quoted = before.is_some_and(quote) && after.is_some_and(quote);
        is_word && (!is_ordinary || is_whole || is_quoted)
    })
}

/// A part of a source file that may name a pack.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    /// The content of a string literal, with escapes as written.
    Text(&'a str),
    /// The first segment of a path.
    Crate(&'a str),
}

/// The tokens of a source file with their lines, without comments and character literals.
fn tokens(text: &str) -> Vec<(usize, Token<'_>)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let begin = at;
        let rest = &text[at..];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            at += comment(rest);
        } else if let Some((token, length)) = literal(rest) {
            found.push((begin, token));
            at += length;
        } else if bytes[at] == b'\'' {
            at += character(rest);
        } else if is_ident(bytes[at]) {
            let length = bytes[at..].iter().take_while(|b| is_ident(**b)).count();
            at += length;
            if text[at..].starts_with("::") && !text[..begin].ends_with("::") {
                found.push((begin, Token::Crate(&rest[..length])));
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    let line = |at: usize| bytes[..at].iter().filter(|b| **b == b'\n').count() + 1;
    found.into_iter().map(|(at, token)| (line(at), token)).collect()
}

/// A string literal at the beginning of `rest`, with its length.
fn literal(rest: &str) -> Option<(Token<'_>, usize)> {
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|p| rest.starts_with(p))?;
    let after = &rest[prefix.len()..];
    let hashes = after.bytes().take_while(|b| *b == b'#').count();
    let is_raw = prefix.ends_with('r');
    if !after[hashes..].starts_with('"') || (hashes > 0 && !is_raw) {
        return None;
    }
    let inside = &after[hashes + 1..];
    let end = if is_raw {
        inside.find(&format!("\"{}", "#".repeat(hashes)))?
    } else {
        let mut escaped = false;
        inside.bytes().position(|b| {
            let closes = b == b'"' && !escaped;
            escaped = b == b'\\' && !escaped;
            closes
        })?
    };
    let length = prefix.len() + hashes + 1 + end + 1 + hashes;
    Some((Token::Text(&inside[..end]), length))
}

/// The length of a block comment, which may be nested.
fn comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if here.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
        } else {
            at += 1;
        }
        if depth == 0 {
            break;
        }
    }
    at.min(rest.len())
}

/// The length of a character literal, or of the quote of a lifetime.
fn character(rest: &str) -> usize {
    let mut inside = rest.char_indices().skip(1);
    match inside.next() {
        Some((_, '\\')) => {
            rest[2..].char_indices().skip(1).find(|(_, c)| *c == '\'').map_or(1, |(at, _)| at + 3)
        }
        Some(_) => inside.next().filter(|(_, c)| *c == '\'').map_or(1, |(at, _)| at + 1),
        None => 1,
    }
}

fn is_ident(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::{Token, tokens};
    use crate::tree::fixture;

    const PACKS: &str = "//- Cargo.toml\n[workspace]\n\
        members = [\"packs/incident\", \"packs/incident/aws-logs\", \"packs/incident/chaos\", \"packs/network\", \"packs/servers\"]\n\
        //- packs/incident/src/lib.rs\npub fn agent() {}\n\
        //- packs/incident/aws-logs/Cargo.toml\n[dependencies]\nrmcp = \"1\"\n\
        //- packs/incident/chaos/Cargo.toml\n[dev-dependencies]\nrmcp = \"1\"\n\
        //- packs/network/src/lib.rs\npub fn agent() {}\n\
        //- packs/servers/src/lib.rs\npub fn all() {}\n";

    #[track_caller]
    fn check(path: &str, source: &str, allowed: &[(&str, &str, &str)], expected: &[&str]) {
        let input = format!("{PACKS}//- {path}\n{source}");
        fixture::check(|tree| super::judge(tree, allowed), &input, expected);
    }

    fn finding(at: &str, pack: &str) -> String {
        format!(
            "{at}: names the pack {pack}: let its profile say this, or take the agent as a value"
        )
    }

    #[test]
    fn a_pack_in_a_text_or_a_path_is_named() {
        for (source, line, pack) in [
            ("const AGENT: &str = \"incident\";", 1, "incident"),
            ("\nuse incident::graph;", 2, "incident"),
            ("x(r#\"{\"agent\": \"network\"}\"#);", 1, "network"),
            ("x(\"{\\\"agent\\\": \\\"network\\\"}\");", 1, "network"),
            ("x(\"the incident is over\");", 1, "incident"),
            ("x(\"daybook mcp aws-logs\");", 1, "aws-logs"),
            ("let x = aws_logs::INFO;", 1, "aws-logs"),
        ] {
            check(
                "agent/src/a.rs",
                source,
                &[],
                &[&finding(&format!("agent/src/a.rs:{line}"), pack)],
            );
        }
    }

    #[test]
    fn ordinary_words_comments_and_parts_of_words_pass() {
        for source in [
            "// The \"incident\" agent: incident::graph.\n/* \"incident\" /* \"network\" */ */",
            "x(\"the network is down\", \"incident_state\", \"/incident-response/key\", 'i', '\\'');",
            "use crate::network::Gate; let x: &'static str = self.incident; chaos::x(); servers::all();",
        ] {
            check("crates/graph/src/a.rs", source, &[], &[]);
        }
    }

    #[test]
    fn tests_and_other_folders_pass() {
        let source = "const AGENT: &str = \"incident\";";
        for path in [
            "agent/tests/it/a.rs",
            "agent/src/a/tests.rs",
            "crates/cli/benches/a.rs",
            "infra/src/a.rs",
        ] {
            check(path, source, &[], &[]);
        }
        check("journal/src/a.rs", &format!("#[cfg(test)]\nmod tests {{\n{source}\n}}\n"), &[], &[]);
    }

    #[test]
    fn an_exception_covers_one_file_and_pack_until_it_is_stale() {
        let source = "const ROLE: &str = \"network\";";
        check("agent/src/a.rs", source, &[("agent/src/a.rs", "network", "a role")], &[]);
        check("crates/cli/src/a.rs", source, &[("crates/cli/", "*", "not yet")], &[]);
        check(
            "agent/src/a.rs",
            source,
            &[("agent/src/a.rs", "incident", "a role")],
            &[
                &finding("agent/src/a.rs:1", "network"),
                "verify/tidy/src/rules/packs.rs:1: agent/src/a.rs (a role) needs no exception any more: remove it from ALLOWED",
            ],
        );
    }

    #[test]
    fn literals_and_paths_are_told_from_all_else() {
        let source =
            "b\"a\\\"b\" r\"\\\" 'x' '\"' '\\u{1}' fn f<'a>() { a::b::c(\"d\ne\"); br##\"\"#\"## }";
        let expected = [
            (1, Token::Text("a\\\"b")),
            (1, Token::Text("\\")),
            (1, Token::Crate("a")),
            (1, Token::Text("d\ne")),
            (2, Token::Text("\"#")),
        ];
        assert_eq!(tokens(source), expected);
    }
}
