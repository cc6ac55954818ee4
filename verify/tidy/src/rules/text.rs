//! No reminders, no invisible characters, and no addresses of package registries.

use crate::tree::{Finding, Tree};

/// Words that mean "later", split in two so that this file passes its own rule.
const LATER: &[&str] =
    &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX"), concat!("to", "do!(")];

/// Hosts of package registries: the ordinary clients know them, and a mirror is configured there.
const REGISTRIES: &[&str] = &[
    concat!("index.cra", "tes.io"),
    concat!("static.cra", "tes.io"),
    concat!("registry.npm", "js.org"),
    concat!("py", "pi.org"),
    concat!("files.python", "hosted.org"),
    concat!("deb.deb", "ian.org"),
];

/// Files that tools write, exempt from the rules on text.
const GENERATED: &[&str] = &["Cargo.lock", "package-lock.json", ".snap"];

const VERBATIM: &[&str] = &["LICENSE", "NOTICE"];

pub(crate) fn findings(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in
        tree.iter().filter(|(path, _)| !GENERATED.iter().any(|end| path.ends_with(end)))
    {
        for (index, line) in text.lines().enumerate() {
            found.extend(
                complaints(path, line).into_iter().map(|what| Finding::new(path, index + 1, what)),
            );
        }
    }
    found
}

fn complaints(path: &str, line: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let verbatim = VERBATIM.iter().any(|name| path.ends_with(name));
    if line.ends_with([' ', '\t']) && !verbatim {
        complaints.push("trailing white space: remove it".to_owned());
    }
    if path.ends_with(".rs") && line.contains('\t') {
        complaints.push("has a tab: write spaces, or \\t in a string".to_owned());
    }
    if let Some(word) = LATER.iter().find(|word| has_word(line, word)) {
        complaints.push(format!("contains {word}: do it or delete it"));
    }
    if let Some(host) = REGISTRIES.iter().find(|host| line.contains(**host)) {
        complaints.push(format!(
            "contains the address of the package registry {host}: name only the package"
        ));
    }
    complaints
}

/// Whether `line` contains `word` as a whole word.
fn has_word(line: &str, word: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        let after = &line[start + word.len()..];
        !line[..start].ends_with(joins) && (word.ends_with('(') || !after.starts_with(joins))
    })
}

#[cfg(test)]
mod tests {
    use crate::tree::fixture;

    #[track_caller]
    fn check(input: &str, expected: &[&str]) {
        fixture::check(super::findings, input, expected);
    }

    #[test]
    fn clean_text_passes() {
        check(
            "//- journal/src/a.rs\nfn mastodon() {}\n//- Cargo.lock\nx \n//- LICENSE\n  y  \n//- Makefile\na:\n\tb\n",
            &[],
        );
    }

    #[test]
    fn what_is_invisible_is_named() {
        check(
            "//- a/src/a.rs\nlet a = 1; \n\tlet b = 2;\n",
            &[
                "a/src/a.rs:1: trailing white space: remove it",
                "a/src/a.rs:2: has a tab: write spaces, or \\t in a string",
            ],
        );
    }

    #[test]
    fn what_is_half_done_is_named() {
        for word in super::LATER {
            check(
                &format!("//- a.md\n\n// {word} it)\n"),
                &[&format!("a.md:2: contains {word}: do it or delete it")],
            );
            check(&format!("//- a.md\nMA{word} and _{word}\n"), &[]);
        }
    }

    #[test]
    fn a_registry_is_named() {
        for host in super::REGISTRIES {
            let what = "name only the package";
            check(
                &format!("//- a.toml\nurl = \"https://{host}/\"\n"),
                &[&format!(
                    "a.toml:1: contains the address of the package registry {host}: {what}"
                )],
            );
        }
    }
}
