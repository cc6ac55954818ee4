//! `daybook generate`: generates sample data for agents.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;

use anyhow::Context as _;
use card_transactions::generator::{self, Options};
use clap::{ArgMatches, FromArgMatches as _, Subcommand};
use extension::command::{Command, Host};
use extension::failure::{Exit, Failure};
use futures_util::future::{FutureExt as _, LocalBoxFuture};

/// `daybook generate`.
pub struct Generate;

#[derive(Debug, Subcommand)]
enum What {
    /// Generate labelled card transactions, some fraudulent, as CSV
    Transactions(Transactions),
}

#[derive(Debug, clap::Args)]
struct Transactions {
    /// Random seed; the same seed generates the same data
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Number of rows
    #[arg(long, value_name = "N", default_value = "5000",
        value_parser = clap::value_parser!(u32).range(
            i64::from(generator::ROWS_MIN)..=i64::from(generator::ROWS_MAX)))]
    rows: u32,
    /// Approximate fraction of frauds, from 0 to 0.2
    #[arg(long, value_name = "FRACTION", default_value = "0.02", value_parser = fraud_permille)]
    fraud_rate: u32,
    /// Write to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Parses a fraction into thousandths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 200")]
fn fraud_permille(text: &str) -> Result<u32, String> {
    let most = f64::from(generator::FRAUD_PERMILLE_MAX) / 1_000.0;
    let part = text.parse::<f64>().ok().filter(|part| (0.0..=most).contains(part));
    let part = part.ok_or_else(|| format!("expected a number from 0 to {most}"))?;
    Ok((part * 1_000.0).round() as u32)
}

impl Command for Generate {
    fn definition(&self) -> clap::Command {
        What::augment_subcommands(clap::Command::new("generate"))
            .about("Generate sample data for agents")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .after_help(
                "\
Examples:
  daybook generate transactions --seed 7 --rows 5000 --output transactions.csv
  daybook generate transactions --seed 7 --rows 5000 --fraud-rate 0.05 | head",
            )
    }

    fn run<'a>(
        &'a self,
        options: &'a ArgMatches,
        host: &'a dyn Host,
    ) -> LocalBoxFuture<'a, Result<Exit, Failure>> {
        async move {
            let What::Transactions(asked) = What::from_arg_matches(options)?;
            host.say(&generate(&asked)?);
            Ok(Exit::Succeeded)
        }
        .boxed_local()
    }
}

fn generate(asked: &Transactions) -> Result<String, Failure> {
    let options = Options { seed: asked.seed, rows: asked.rows, fraud_permille: asked.fraud_rate };
    let made = match &asked.output {
        None => generator::generate(options, BufWriter::new(io::stdout().lock()))?,
        Some(path) => {
            let file = File::create(path);
            let file = file.with_context(|| format!("cannot write {}", path.display()))?;
            generator::generate(options, BufWriter::new(file))?
        }
    };
    Ok(format!(
        "{} transactions of {} cards, {} of them frauds",
        made.rows, made.cards, made.frauds
    ))
}
