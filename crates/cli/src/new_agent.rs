//! The templates of a new agent: name checks, the dependency on Daybook, and the files.

use std::path::{Path, PathBuf};

use graph::agent::Agent;
use serde_json::json;

use crate::args::{self, Language};
use crate::failure::Failure;
use crate::installed;

/// The checkout that built this binary. A package does not have it, because a path of the machine that builds would make
/// each build another one.
const CHECKOUT: Option<&str> = if option_env!("DAYBOOK_PACKAGED").is_some() {
    None
} else {
    Some(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
};

/// Longest name, in characters.
///
/// Source: crates.io's limit on crate names.
const NAME_CHARS_MAX: usize = 64;

/// The agent's name in the template.
const TEMPLATE_NAME: &str = "janitor";

/// The placeholder for Daybook's source in the template's manifest, once per dependency.
const DAYBOOK: &str = "DAYBOOK";

/// The template: path in the new crate, and text.
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

/// What the folder of a program has in every language: an input, and a folder that it fits.
const OF_PROGRAMS: [(&str, &str); 3] = [
    ("input.json", include_str!("../template/input.json")),
    (
        "box/old.log",
        "An old log of more than eighty characters, so that the folder is above its limit.\n",
    ),
    ("box/new.log", "A new log of fewer than fifty characters.\n"),
];

/// The template in Python.
const PYTHON: [(&str, &str); 2] = [
    ("janitor.py", include_str!("../template/python/janitor.py")),
    ("daybook.toml", include_str!("../template/python/daybook.toml")),
];

/// The template in JavaScript with types in comments.
const TYPESCRIPT: [(&str, &str); 3] = [
    ("janitor.js", include_str!("../template/typescript/janitor.js")),
    ("package.json", include_str!("../template/typescript/package.json")),
    ("daybook.toml", include_str!("../template/typescript/daybook.toml")),
];

/// The template in Rust, as a program.
const RUST: [(&str, &str); 4] = [
    ("Cargo.toml", include_str!("../template/rust/manifest.toml")),
    ("src/main.rs", include_str!("../template/rust/src/main.rs")),
    ("daybook.toml", include_str!("../template/rust/daybook.toml")),
    (".gitignore", include_str!("../template/gitignore")),
];

/// Names already used in the new crate: its dependencies, Rust's own crates, its binaries.
const TAKEN: [&str; 15] = [
    "agent",
    "alloc",
    "cli",
    "core",
    "daybook",
    "files",
    "graph",
    "packs",
    "rmcp",
    "schemars",
    "serde",
    "serde_json",
    "std",
    "test",
    "tokio",
];

/// Reserved words, which cannot name a crate.
///
/// Source: The Rust Reference, "Keywords", 2024 edition.
const KEYWORDS: &str = "abstract as async await become box break const continue crate do dyn else \
    enum extern false final fn for gen if impl in let loop macro match mod move mut override priv \
    pub ref return self static struct super trait true try type typeof unsafe unsized use virtual \
    where while yield";

/// An agent's crate to create.
#[derive(Clone, Debug, PartialEq)]
pub struct NewAgent {
    /// The name of the agent and of the folder.
    pub name: String,
    pub daybook: Source,
    pub language: Language,
}

/// The source of a crate's dependency on Daybook, which is not on crates.io.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A checkout's absolute path.
    Checkout(PathBuf),
    /// The folder of an installation with the kits for programs, and without the crates of a graph.
    Installed(PathBuf),
    /// A git URL.
    Repository(String),
}

impl NewAgent {
    /// The files, as paths and texts.
    pub fn files(&self) -> Vec<(String, String)> {
        let own: &[_] = match self.language {
            Language::RustGraph => {
                return self.crate_files().map(|(path, text)| (path.to_owned(), text)).collect();
            }
            Language::Python => &PYTHON,
            Language::Typescript => &TYPESCRIPT,
            Language::Rust => &RUST,
        };
        // A JSON string is also a TOML string.
        let kit = self.kit().unwrap_or_default();
        let kit = match self.language {
            Language::Typescript => json!(format!("file:{kit}")),
            _ => json!(kit),
        };
        let of_agent = own.iter().map(|(path, text)| {
            let text = text.replace(TEMPLATE_NAME, &self.name).replace("KIT", &kit.to_string());
            (path.replace(TEMPLATE_NAME, &self.name), text)
        });
        let others =
            OF_PROGRAMS.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        of_agent.chain(others).collect()
    }

    /// The folder of the kit for programs; `None` without a folder of Daybook, or for a graph.
    pub fn kit(&self) -> Option<String> {
        let folder = match self.language {
            Language::Python => "python",
            Language::Typescript => "typescript",
            Language::Rust => "rust",
            Language::RustGraph => return None,
        };
        let (Source::Checkout(source) | Source::Installed(source)) = &self.daybook else {
            return None;
        };
        Some(source.join("sdk").join(folder).to_string_lossy().into_owned())
    }

    /// The crate's files, as paths and texts.
    fn crate_files(&self) -> impl Iterator<Item = (&'static str, String)> {
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
    /// The path or URL, for messages.
    pub fn shown(&self) -> String {
        match self {
            Self::Checkout(folder) | Self::Installed(folder) => folder.display().to_string(),
            Self::Repository(url) => url.clone(),
        }
    }

    /// The TOML dependency on one of Daybook's crates. A JSON string is also a TOML string.
    fn dependency(&self, name: &str) -> String {
        match self {
            Self::Checkout(folder) | Self::Installed(folder) => {
                format!("path = {}", json!(folder.join(place(name)).to_string_lossy()))
            }
            Self::Repository(url) => format!("git = {}", json!(url)),
        }
    }
}

/// Validates the name and locates Daybook.
///
/// # Errors
/// When the name is invalid or taken, or Daybook is not found.
pub fn resolve(new: args::NewAgent, agents: &[Agent], program: &Path) -> Result<NewAgent, Failure> {
    check_name(&new.name, agents)?;
    let daybook = match new.daybook {
        Some(url) if url.contains("://") => Source::Repository(url),
        Some(folder) => checkout(Path::new(&folder)).ok_or_else(|| {
            Failure::usage(format!("--daybook is `{folder}`, which is not a checkout of Daybook"))
                .hint("pass the folder with its Cargo.toml, or a git URL")
        })?,
        None => match installed::share(program) {
            Some(share) if new.language != Language::RustGraph => Source::Installed(share),
            _ => CHECKOUT
                .and_then(|folder| checkout(Path::new(folder)))
                .ok_or_else(|| nowhere(&new))?,
        },
    };
    if new.language != Language::RustGraph && matches!(daybook, Source::Repository(_)) {
        return Err(Failure::usage("--daybook is a URL, and the kits are used from a folder")
            .hint("clone it, and pass the folder"));
    }
    Ok(NewAgent { name: new.name, daybook, language: new.language })
}

/// The failure without a source.
fn nowhere(new: &args::NewAgent) -> Failure {
    if new.language == Language::RustGraph {
        return Failure::unknown("a graph is compiled with the crates of Daybook, and no checkout is here")
            .hint(
                "pass --daybook DIR or --daybook URL, or make a program: --language python, typescript or rust",
            );
    }
    Failure::unknown("neither an installation nor a checkout of Daybook is here")
        .hint("pass --daybook DIR, a checkout with the kits")
}

/// The folder of one of the template's dependencies in a checkout.
fn place(name: &str) -> PathBuf {
    if matches!(name, "agent" | "packs") { name.into() } else { Path::new("crates").join(name) }
}

fn checkout(folder: &Path) -> Option<Source> {
    let folder = folder.canonicalize().ok()?;
    let has = |name: &Path| folder.join(name).join("Cargo.toml").is_file();
    ["agent", "cli", "graph", "packs"]
        .into_iter()
        .all(|name| has(&place(name)))
        .then_some(Source::Checkout(folder))
}

fn check_name(name: &str, agents: &[Agent]) -> Result<(), Failure> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b);
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !begins || !name.bytes().all(plain) || name.len() > NAME_CHARS_MAX {
        let problem = format!("invalid agent name `{name}`");
        return Err(Failure::usage(problem).hint(format!(
            "use lower-case letters, digits, - and _, starting with a letter, at most \
             {NAME_CHARS_MAX} characters, such as disk-janitor"
        )));
    }
    let module = name.replace('-', "_");
    if KEYWORDS.split(' ').any(|word| word == module) || TAKEN.contains(&module.as_str()) {
        return Err(Failure::usage(format!("agent name `{name}` is reserved in the new crate"))
            .hint(format!("choose another name, such as {name}-janitor")));
    }
    if packs::named(agents, name).is_some() {
        return Err(Failure::usage(format!("agent `{name}` already exists"))
            .hint("choose another name; `daybook agents` lists those in use"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str) -> Option<String> {
        check_name(name, packs::all()).err().map(|failure| format!("{failure:?}"))
    }

    #[test]
    fn an_invalid_reserved_or_taken_name_is_refused() {
        for name in ["a", "disk-janitor", "r2_d2", &"a".repeat(64)] {
            assert_eq!(refused(name), None, "{name}");
        }
        for name in ["", "Disk", "7up", "-a", "a b", "a/b", "../a", "ü", &"a".repeat(65)] {
            assert!(refused(name).unwrap().contains("invalid agent name"), "{name}");
        }
        for name in ["fn", "graph", "serde-json", "daybook"] {
            assert!(refused(name).unwrap().contains("is reserved"), "{name}");
        }
        assert!(refused("incident").unwrap().contains("already exists"));
    }

    #[test]
    fn a_program_is_named_like_its_agent_and_finds_its_kit() {
        for (language, file, kit) in [
            (Language::Python, "tidy.py", "\"/a/sdk/python\""),
            (Language::Typescript, "tidy.js", "\"file:/a/sdk/typescript\""),
            (Language::Rust, "src/main.rs", "path = \"/a/sdk/rust\""),
        ] {
            let daybook = Source::Checkout("/a".into());
            let new = NewAgent { name: "tidy".to_owned(), daybook, language };
            let files = new.files();
            assert!(files.iter().any(|(path, _)| path == file), "{files:?}");
            let all: String = files.into_iter().map(|(_, text)| text).collect();
            assert!(
                all.contains(kit) && !all.contains(TEMPLATE_NAME) && !all.contains("KIT"),
                "{all}"
            );
        }
    }

    #[test]
    fn every_placeholder_of_the_template_is_replaced() {
        for (source, line) in [
            (Source::Checkout("/a \"b\"".into()), r#"graph = { path = "/a \"b\"/crates/graph" }"#),
            (Source::Repository("https://x/y".to_owned()), r#"graph = { git = "https://x/y" }"#),
        ] {
            let new = NewAgent {
                name: "disk-tidy".to_owned(),
                daybook: source,
                language: Language::RustGraph,
            };
            let all: String = new.files().into_iter().map(|(_, text)| text).collect();
            for gone in [TEMPLATE_NAME, "{ DAYBOOK", "disk-tidy::"] {
                assert!(!all.contains(gone), "{gone}: {all}");
            }
            for there in [line, "name = \"disk-tidy\"", "disk_tidy::agent()"] {
                assert!(all.contains(there), "{there}: {all}");
            }
        }
    }
}
