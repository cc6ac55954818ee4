//! The commands about card payments.

use std::path::PathBuf;

use clap::{Args as Group, Subcommand};
use tools::card_transactions::generator;

/// `investigate`.
#[derive(Debug, Group)]
pub struct Investigate {
    /// The transactions: a CSV or Parquet file, or the address of a service on this machine
    pub transactions: String,
    /// A file with the ids to investigate, one a line; - for stdin
    #[arg(long, value_name = "FILE|-")]
    pub ids: PathBuf,
    /// How many are investigated at a time
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub parallel: u8,
    /// policy, bedrock:ID, openai:NAME or transcript:FILE
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// If nothing listens at the endpoint, starts a stack for the length of the run
    #[arg(long)]
    pub with_stack: bool,
}

/// `generate`.
#[derive(Debug, Group)]
pub struct Generate {
    /// What is made.
    #[command(subcommand)]
    pub what: What,
}

/// What `generate` makes.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Card transactions as CSV, with frauds among them and their labels
    Transactions(Transactions),
}

/// Card transactions.
#[derive(Debug, Group)]
pub struct Transactions {
    /// What all chance comes from: a seed makes one data set
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// How many rows
    #[arg(long, value_name = "N", default_value = "5000",
        value_parser = clap::value_parser!(u32).range(
            i64::from(generator::ROWS_MIN)..=i64::from(generator::ROWS_MAX)))]
    pub rows: u32,
    /// Which part of them are frauds, about: 0 to 0.2
    #[arg(long, value_name = "PART", default_value = "0.02", value_parser = fraud_permille)]
    pub fraud_rate: u32,
    /// The file that is written, instead of stdout
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Reads a part of a whole as thousandths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 200")]
fn fraud_permille(text: &str) -> Result<u32, String> {
    let most = f64::from(generator::FRAUD_PERMILLE_MAX) / 1_000.0;
    let part = text.parse::<f64>().ok().filter(|part| (0.0..=most).contains(part));
    let part = part.ok_or_else(|| format!("expected a number from 0 to {most}"))?;
    Ok((part * 1_000.0).round() as u32)
}
