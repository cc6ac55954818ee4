//! `generate`: data to try agents with.

use std::fs::File;
use std::io::{self, BufWriter};

use anyhow::Context as _;
use tools::card_transactions::generator::{self, Recipe};

use crate::args::payments::What;
use crate::failure::{Exit, Failure};
use crate::output;

/// Makes a data set.
///
/// # Errors
/// When it cannot be written.
pub fn generate(what: What) -> Result<Exit, Failure> {
    let What::Transactions(asked) = what;
    let recipe = Recipe { seed: asked.seed, rows: asked.rows, fraud_permille: asked.fraud_rate };
    let made = match &asked.output {
        None => generator::generate(recipe, BufWriter::new(io::stdout().lock()))?,
        Some(path) => {
            let file = File::create(path);
            let file = file.with_context(|| format!("cannot write {}", path.display()))?;
            generator::generate(recipe, BufWriter::new(file))?
        }
    };
    output::say(&format!(
        "{} transactions of {} cards, {} of them frauds",
        made.rows, made.cards, made.frauds
    ));
    Ok(Exit::Succeeded)
}
