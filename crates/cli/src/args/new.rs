//! The options of `new`.

use clap::{Args as Group, Subcommand, ValueEnum};

/// `new`.
#[derive(Debug, Group)]
pub struct New {
    /// The kind.
    #[command(subcommand)]
    pub what: NewWhat,
}

/// What `new` can create.
#[derive(Debug, Subcommand)]
pub enum NewWhat {
    /// Create an agent in a folder: a program in Python, JavaScript or Rust, or a graph in Rust
    #[command(after_help = "\
Examples:
  daybook new agent janitor --language python
  cd janitor && daybook dev

  daybook new agent janitor
  cd janitor && cargo test")]
    Agent(NewAgent),
}

/// `new agent`.
#[derive(Debug, Group)]
pub struct NewAgent {
    /// Name of the agent and its crate, which is created in a folder of this name
    pub name: String,
    /// Source of Daybook: a checkout's folder or a git URL [default: the installation, or the checkout that built
    /// this binary]
    #[arg(long, value_name = "DIR|URL")]
    pub daybook: Option<String>,
    /// Language of the agent
    #[arg(long, value_name = "LANGUAGE", default_value = "rust-graph")]
    pub language: Language,
}

/// A language for which there is a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// A program with the kit of `sdk/python`.
    Python,
    /// A program with the kit of `sdk/typescript`.
    Typescript,
    /// A program with the kit of `sdk/rust`.
    Rust,
    /// A crate with a graph, which is compiled with Daybook.
    RustGraph,
}
