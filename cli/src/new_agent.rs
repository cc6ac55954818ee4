//! The crate that a new agent begins with: what may be its name, where it finds Daybook, its files.

use std::path::{Path, PathBuf};

use graph::agent::Agent;
use serde_json::json;

use crate::args;
use crate::failure::Failure;

/// The checkout that this binary was built from.
const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Longest name, in characters.
///
/// Source: the package registry of Rust takes no longer ones.
const NAME_CHARS_MAX: usize = 64;

/// The agent's name in the template.
const TEMPLATE_NAME: &str = "janitor";

/// What stands in the template's manifest for where Daybook is, once a dependency.
const DAYBOOK: &str = "DAYBOOK";

/// The template: the path in the new crate, and the text.
const TEMPLATE: [(&str, &str); 9] = [
    ("Cargo.toml", include_str!("../template/manifest.toml")),
    ("src/lib.rs", include_str!("../template/src/lib.rs")),
    ("src/bin/daybook.rs", include_str!("../template/src/bin/daybook.rs")),
    ("src/bin/agent.rs", include_str!("../template/src/bin/agent.rs")),
    ("src/bin/files.rs", include_str!("../template/src/bin/files.rs")),
    ("tests/agent.rs", include_str!("../template/tests/agent.rs")),
    ("mcp.json", include_str!("../template/mcp.json")),
    ("rustfmt.toml", include_str!("../template/rustfmt.toml")),
    (".gitignore", include_str!("../template/gitignore")),
];

/// Names that the new crate gives to something else: what it depends on, what Rust itself has, its
/// binaries.
const TAKEN: [&str; 14] = [
    "agent",
    "alloc",
    "cli",
    "core",
    "daybook",
    "files",
    "graph",
    "rmcp",
    "schemars",
    "serde",
    "serde_json",
    "std",
    "test",
    "tokio",
];

/// Words that no crate can be named by.
///
/// Source: The Rust Reference, "Keywords", 2024 edition.
const KEYWORDS: &str = "abstract as async await become box break const continue crate do dyn else \
    enum extern false final fn for gen if impl in let loop macro match mod move mut override priv \
    pub ref return self static struct super trait true try type typeof unsafe unsized use virtual \
    where while yield";

/// The crate of an agent, to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct NewAgent {
    /// The agent's name, and the folder's.
    pub name: String,
    /// Where the crate finds Daybook.
    pub daybook: Source,
}

/// Where a crate finds Daybook, of which nothing is published.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// In a checkout: its folder, absolute.
    Checkout(PathBuf),
    /// In a git repository: its URL.
    Repository(String),
}

impl NewAgent {
    /// The crate's files: path and text.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, String)> {
        let module = format!("{}::", self.name.replace('-', "_"));
        TEMPLATE.iter().map(move |(path, text)| {
            let text = text.replace(&format!("{TEMPLATE_NAME}::"), &module);
            let text = text.replace(TEMPLATE_NAME, &self.name);
            let text = if *path == "Cargo.toml" { self.manifest(&text) } else { text };
            (*path, text)
        })
    }

    fn manifest(&self, template: &str) -> String {
        let lines = template.lines().map(|line| {
            let name = line.split(' ').next().unwrap_or_default();
            line.replace(DAYBOOK, &self.daybook.dependency(name)) + "\n"
        });
        lines.collect()
    }
}

impl Source {
    /// Where this is, for people.
    pub fn shown(&self) -> String {
        match self {
            Self::Checkout(folder) => folder.display().to_string(),
            Self::Repository(url) => url.clone(),
        }
    }

    /// The dependency on one of Daybook's crates. A text in JSON is one in TOML, too.
    fn dependency(&self, name: &str) -> String {
        match self {
            Self::Checkout(folder) => {
                format!("path = {}", json!(folder.join(name).to_string_lossy()))
            }
            Self::Repository(url) => format!("git = {}", json!(url)),
        }
    }
}

/// Checks what was typed.
///
/// # Errors
/// When the name is no crate's or is taken, or Daybook is not where it is said to be.
pub fn resolve(new: args::NewAgent, agents: &[Agent]) -> Result<NewAgent, Failure> {
    check_name(&new.name, agents)?;
    let daybook = match new.daybook {
        Some(url) if url.contains("://") => Source::Repository(url),
        Some(folder) => checkout(Path::new(&folder)).ok_or_else(|| {
            Failure::usage(format!("--daybook names `{folder}`, which is no checkout of Daybook"))
                .hint("give the folder that holds its Cargo.toml, or a git URL")
        })?,
        None => checkout(Path::new(CHECKOUT)).ok_or_else(|| {
            Failure::unknown("the checkout that this binary was built from is not there any more")
                .hint("say where Daybook is with --daybook DIR or --daybook URL")
        })?,
    };
    Ok(NewAgent { name: new.name, daybook })
}

fn checkout(folder: &Path) -> Option<Source> {
    let folder = folder.canonicalize().ok()?;
    let has = |name: &str| folder.join(name).join("Cargo.toml").is_file();
    ["agent", "cli", "graph"].into_iter().all(has).then_some(Source::Checkout(folder))
}

fn check_name(name: &str, agents: &[Agent]) -> Result<(), Failure> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b);
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !begins || !name.bytes().all(plain) || name.len() > NAME_CHARS_MAX {
        let problem = format!("`{name}` cannot be the name of an agent and its crate");
        return Err(Failure::usage(problem).hint(format!(
            "it takes lower-case letters, digits, - and _, a letter first, {NAME_CHARS_MAX} \
             characters at most, such as disk-janitor"
        )));
    }
    let module = name.replace('-', "_");
    if KEYWORDS.split(' ').any(|word| word == module) || TAKEN.contains(&module.as_str()) {
        return Err(Failure::usage(format!("`{name}` already means something in the crate"))
            .hint(format!("say what it is for, such as {name}-janitor")));
    }
    if agents::named(agents, name).is_some() {
        return Err(Failure::usage(format!("there is an agent named `{name}`"))
            .hint("choose another name; `daybook agents` lists those that are taken"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str) -> Option<String> {
        check_name(name, agents::all()).err().map(|failure| format!("{failure:?}"))
    }

    #[test]
    fn a_name_is_refused_if_no_crate_or_a_second_agent_would_have_it() {
        for name in ["a", "disk-janitor", "r2_d2", &"a".repeat(64)] {
            assert_eq!(refused(name), None, "{name}");
        }
        for name in ["", "Disk", "7up", "-a", "a b", "a/b", "../a", "ü", &"a".repeat(65)] {
            assert!(refused(name).unwrap().contains("cannot be the name"), "{name}");
        }
        for name in ["fn", "graph", "serde-json", "daybook"] {
            assert!(refused(name).unwrap().contains("already means"), "{name}");
        }
        assert!(refused("incident").unwrap().contains("there is an agent"));
    }

    #[test]
    fn the_template_s_name_and_place_give_way_everywhere() {
        for (source, line) in [
            (Source::Checkout("/a \"b\"".into()), r#"graph = { path = "/a \"b\"/graph" }"#),
            (Source::Repository("https://x/y".to_owned()), r#"graph = { git = "https://x/y" }"#),
        ] {
            let new = NewAgent { name: "disk-tidy".to_owned(), daybook: source };
            let all: String = new.files().map(|(_, text)| text).collect();
            for gone in [TEMPLATE_NAME, "{ DAYBOOK", "disk-tidy::"] {
                assert!(!all.contains(gone), "{gone}: {all}");
            }
            for there in [line, "name = \"disk-tidy\"", "disk_tidy::agent()"] {
                assert!(all.contains(there), "{there}: {all}");
            }
        }
    }
}
