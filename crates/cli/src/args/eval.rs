//! The options of `eval`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args as Group;

/// `eval`.
#[derive(Debug, Group)]
pub struct Eval {
    /// The folder of cases
    pub folder: PathBuf,
    /// The agent
    #[arg(long, value_name = "NAME")]
    pub agent: String,
    /// A model: policy, bedrock:ID, openai:NAME, transcript:FILE, or transcript for each case's own
    /// recording; repeatable [default: policy]
    #[arg(long, value_name = "MODEL")]
    pub model: Vec<String>,
    /// Run each case N times with each model
    #[arg(long, value_name = "N", default_value = "1")]
    pub repeat: NonZeroU32,
    /// Run only this case; repeatable
    #[arg(long, value_name = "NAME")]
    pub case: Vec<String>,
    /// Compare with an earlier run
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Write this run as a baseline
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
}
