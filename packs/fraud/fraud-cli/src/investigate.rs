//! `daybook investigate`: investigates many payments, one session each, and summarises them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use card_transactions::{Remote, Source};
use clap::{ArgMatches, Args, FromArgMatches as _};
use extension::command::{Batch, Command, Host};
use extension::failure::{Exit, Failure};
use extension::input;
use fraud::graph::GRAPH;
use futures_util::future::{FutureExt as _, LocalBoxFuture};
use serde_json::{Map, Value, json};

use super::ranking::Ranking;
use super::report::{self, Investigated};

/// Most ids per batch.
const IDS_MAX: usize = 10_000;

/// `daybook investigate`.
pub struct Investigate;

#[derive(Debug, Args)]
struct Options {
    /// The transactions: a CSV or Parquet file, or the URL of a service on this machine
    transactions: String,
    /// File of transaction ids, one per line, or - for stdin
    #[arg(long, value_name = "FILE|-")]
    ids: PathBuf,
    /// Number of concurrent sessions
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u8).range(1..=64))]
    parallel: u8,
    /// The model: policy, bedrock:ID, openai:NAME or transcript:FILE
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Start a stack for this run if none is listening at the endpoint
    #[arg(long)]
    with_stack: bool,
}

impl Command for Investigate {
    fn definition(&self) -> clap::Command {
        Options::augment_args(clap::Command::new("investigate"))
            .about("Investigate many card payments, one session each, and summarise them")
            .after_help(
                "\
Examples:
  daybook investigate packs/fraud/transactions/sample.csv --ids suspicious.txt
  cut -d, -f1 alerts.csv | daybook investigate transactions.csv --ids - --parallel 8 --with-stack

Exit codes: 0 all investigations succeeded · 1 some did not · 2 result unknown",
            )
    }

    fn starts_sessions(&self) -> bool {
        true
    }

    fn run<'a>(
        &'a self,
        options: &'a ArgMatches,
        host: &'a dyn Host,
    ) -> LocalBoxFuture<'a, Result<Exit, Failure>> {
        async move {
            if host.surroundings().is_in_account {
                return Err(Failure::only_local(
                    "the payments are read from a local file; in an account, trigger the agent \
                     with the URL of a transaction service",
                ));
            }
            investigate(Options::from_arg_matches(options)?, host).await
        }
        .boxed_local()
    }
}

async fn investigate(options: Options, host: &dyn Host) -> Result<Exit, Failure> {
    let ids = ids(&options.ids)?;
    let model = options.model.map(input::model_name);
    let batch = Batch {
        details: ids.iter().map(|id| detail(id, &options.transactions, model.as_deref())).collect(),
        parallel: usize::from(options.parallel),
        with_stack: options.with_stack,
    };
    let surroundings = host.surroundings();
    let mut done = Vec::with_capacity(ids.len());
    let mut ended = |number: usize, session: Value| -> Result<(), Failure> {
        if surroundings.json {
            host.print_json(&session)?;
        }
        let investigated = Investigated { id: ids[number].clone(), session };
        host.say(&format!("{} of {}: {}", done.len() + 1, ids.len(), investigated.in_short()));
        done.push(investigated);
        Ok(())
    };
    host.run_sessions(batch, &mut ended).await?;
    let ranking = ranking(&options.transactions, &done, host);
    if surroundings.json {
        if let Some(Ranking { area, frauds, honest }) = ranking {
            host.print_json(
                &json!({"type": "ranking", "area": area, "frauds": frauds, "honest": honest}),
            )?;
        }
    } else {
        host.print(&report::table(surroundings.colour, &mut done))?;
        host.print(&ranking.iter().map(Ranking::in_words).collect::<Vec<_>>())?;
    }
    let all_succeeded = done.iter().all(Investigated::has_succeeded);
    Ok(if all_succeeded { Exit::Succeeded } else { Exit::Failed })
}

fn detail(id: &str, transactions: &str, model: Option<&str>) -> Map<String, Value> {
    let mut asked = json!({ "transaction_id": id, "data": transactions });
    input::make_absolute(&mut asked, "data", None);
    let mut detail = Map::new();
    detail.insert("agent".to_owned(), json!(GRAPH.name));
    detail.insert("input".to_owned(), asked);
    detail.extend(model.map(|model| ("model".to_owned(), json!(model))));
    detail
}

/// Ranks the labelled payments. Reads the data again for the labels, which agents never see.
fn ranking(data: &str, done: &[Investigated], host: &dyn Host) -> Option<Ranking> {
    let ids: BTreeSet<&str> = done.iter().map(|investigated| investigated.id.as_str()).collect();
    let labels = Source::new(data, Remote::Refused).and_then(|source| source.labels(&ids));
    match labels {
        Ok(labels) => {
            let scored = done.iter().filter_map(|investigated| {
                Some((investigated.score()?, *labels.get(&investigated.id)?))
            });
            Ranking::of(scored.collect())
        }
        Err(error) => {
            host.say(&format!("cannot read the labels: {error}"));
            None
        }
    }
}

/// Reads ids, one per line, without duplicates, empty lines and `#` comments.
///
/// # Errors
/// When the file cannot be read, or has no ids or more than [`IDS_MAX`].
fn ids(path: &Path) -> Result<Vec<String>, Failure> {
    let text = input::text(path).with_context(|| format!("cannot read {}", path.display()))?;
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    let mut seen = BTreeSet::new();
    let ids: Vec<String> = lines.filter(|id| seen.insert(*id)).map(str::to_owned).collect();
    let problem = match ids.len() {
        0 => "has no ids".to_owned(),
        1..=IDS_MAX => return Ok(ids),
        many => format!("has {many} ids, at most {IDS_MAX} are allowed"),
    };
    Err(Failure::usage(format!("{} {problem}", path.display()))
        .hint("write one transaction id per line"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_one_per_line_without_duplicates() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ids");
        std::fs::write(&file, "# alerts\nt1\n\n t2 \nt1\n").unwrap();
        assert_eq!(ids(&file).unwrap(), ["t1", "t2"]);
        std::fs::write(&file, "# none\n").unwrap();
        assert!(ids(&file).is_err());
    }
}
