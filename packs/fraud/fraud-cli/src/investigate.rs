//! `daybook investigate`: investigates many payments, one session each, and summarises them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use card_transactions::{Labels, Remote, Source};
use clap::{ArgMatches, Args, FromArgMatches as _};
use extension::command::{Batch, Command, Host};
use extension::failure::{Exit, Failure};
use extension::input;
use fraud::graph::GRAPH;
use futures_util::future::{FutureExt as _, LocalBoxFuture};
use serde_json::{Map, Value, json};

use super::handover::{self, Case};
use super::progress;
use super::ranking::Ranking;
use super::reliability::{self, Scored};
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
    /// Also write a case file to this folder: case.html and case.csv, with the cited payments
    #[arg(long, value_name = "DIR")]
    case_file: Option<PathBuf>,
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
  daybook investigate transactions.csv --ids suspicious.txt --case-file case-17
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
    if let Some(folder) = &options.case_file {
        handover::check(folder).map_err(|problem| {
            Failure::usage(problem).hint("name another folder: a case file is not overwritten")
        })?;
    }
    let model = options.model.clone().map(input::model_name);
    let batch = Batch {
        details: ids.iter().map(|id| detail(id, &options.transactions, model.as_deref())).collect(),
        parallel: usize::from(options.parallel),
        with_stack: options.with_stack,
    };
    let mut done = Vec::with_capacity(ids.len());
    let outcome = run_all(batch, &ids, &mut done, host).await;
    // What was investigated is reported although the rest was not.
    done.sort_by(Investigated::worst_first);
    let has_report = !done.is_empty() || outcome.is_ok();
    if has_report {
        report(&options, &ids, &done, host)?;
    }
    outcome?;
    let all_succeeded = done.iter().all(Investigated::has_succeeded);
    Ok(if all_succeeded { Exit::Succeeded } else { Exit::Failed })
}

async fn run_all(
    batch: Batch,
    ids: &[String],
    done: &mut Vec<Investigated>,
    host: &dyn Host,
) -> Result<(), Failure> {
    let json = host.surroundings().json;
    host.show_progress(&progress::bar(0, ids.len(), None));
    let mut ended = |number: usize, session: Value| -> Result<(), Failure> {
        if json {
            host.print_json(&session)?;
        }
        done.push(Investigated { id: ids[number].clone(), session });
        let worst = done.iter().min_by(|a, b| a.worst_first(b)).map(Investigated::in_short);
        if !host.show_progress(&progress::bar(done.len(), ids.len(), worst.as_deref())) {
            let newest = done.last().map(Investigated::in_short).unwrap_or_default();
            host.say(&format!("{} of {}: {newest}", done.len(), ids.len()));
        }
        Ok(())
    };
    host.run_sessions(batch, &mut ended).await
}

fn report(
    options: &Options,
    ids: &[String],
    done: &[Investigated],
    host: &dyn Host,
) -> Result<(), Failure> {
    let surroundings = host.surroundings();
    let scored = scored(&options.transactions, done, host);
    let ranking = Ranking::of(scored.of.iter().map(|one| (one.score, one.is_fraud)).collect());
    let mut quality: Vec<String> = ranking.iter().map(Ranking::in_words).collect();
    quality.extend(reliability::table(&scored.of, 1.0));
    quality.extend(scored.selection_note());
    if surroundings.json {
        if let Some(ranking) = ranking {
            host.print_json(&ranking_json(&ranking, &scored.of))?;
        }
    } else {
        host.print(&report::table(surroundings.colour, done))?;
        host.print(&quality)?;
    }
    match &options.case_file {
        Some(folder) => write_case_file(folder, options, ids, done, &quality, host),
        None => Ok(()),
    }
}

fn ranking_json(ranking: &Ranking, scored: &[Scored]) -> Value {
    let (low, high) = ranking.interval();
    let bands = reliability::bands(scored, 1.0);
    let band = |band: &reliability::Band| {
        json!({"from": band.from, "to": band.to, "frauds": band.frauds, "honest": band.honest,
            "score": band.score, "share": band.share, "low": band.low, "high": band.high})
    };
    json!({"type": "ranking", "area": ranking.area, "area_low": low, "area_high": high,
        "interval": "95 %, Newcombe's method 5", "frauds": ranking.frauds, "honest": ranking.honest,
        "uncalibrated": scored.iter().filter(|one| !one.is_calibrated).count(),
        "reliability": bands.iter().map(band).collect::<Vec<_>>()})
}

fn write_case_file(
    folder: &Path,
    options: &Options,
    ids: &[String],
    done: &[Investigated],
    quality: &[String],
    host: &dyn Host,
) -> Result<(), Failure> {
    let cited = handover::cited(done);
    let source = Source::new(&options.transactions, Remote::Refused);
    let payments = source.and_then(|source| source.payments(&cited)).unwrap_or_else(|error| {
        host.say(&format!("the case file cites ids only: {error}"));
        BTreeMap::new()
    });
    let is_done = |id: &&String| done.iter().any(|one| one.id == **id);
    let left_out: Vec<String> = ids.iter().filter(|id| !is_done(id)).cloned().collect();
    let source = Path::new(&options.transactions).file_name();
    let source =
        source.map_or_else(|| "a service".to_owned(), |n| n.to_string_lossy().into_owned());
    let case = Case { source: &source, done, left_out: &left_out, payments: &payments, quality };
    let written = handover::write(folder, &case);
    let [page, table] =
        written.with_context(|| format!("cannot write the case file in {}", folder.display()))?;
    host.say(&format!("case file: {} and {}", page.display(), table.display()));
    Ok(())
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

/// The labelled payments with their scores.
struct Labelled {
    of: Vec<Scored>,
    /// Share of frauds among all labelled payments of the data; `None` without labels.
    share: Option<f64>,
}

/// The labelled shares of a selection and of its data that differ by this factor are told.
const SELECTION_FACTOR: f64 = 2.0;

impl Labelled {
    /// Shares of frauds hold for payments like the selected ones.
    #[expect(clippy::cast_precision_loss, reason = "a batch has fewer than 2^53 payments")]
    fn selection_note(&self) -> Option<String> {
        let frauds = self.of.iter().filter(|one| one.is_fraud).count() as f64;
        let (own, all) = (frauds / (self.of.len().max(1)) as f64, self.share?);
        let is_alike = own <= all * SELECTION_FACTOR && own * SELECTION_FACTOR >= all;
        (!is_alike && !self.of.is_empty()).then(|| {
            format!(
                "{:.1} % of the investigated payments are frauds, and {:.1} % of all in the data: scores are \
                 probabilities for the data, so this selection has other shares",
                own * 100.0,
                all * 100.0
            )
        })
    }
}

/// Reads the data again for the labels, which agents never see.
#[expect(clippy::cast_precision_loss, reason = "a data set has fewer than 2^53 rows")]
fn scored(data: &str, done: &[Investigated], host: &dyn Host) -> Labelled {
    let ids: BTreeSet<&str> = done.iter().map(|investigated| investigated.id.as_str()).collect();
    let labels = Source::new(data, Remote::Refused).and_then(|source| source.labels(&ids));
    let labels = labels.unwrap_or_else(|error| {
        host.say(&format!("cannot read the labels: {error}"));
        Labels::default()
    });
    let of = done.iter().filter_map(|investigated| {
        let is_fraud = *labels.of.get(&investigated.id)?;
        let is_calibrated = investigated.is_calibrated();
        Some(Scored { score: investigated.score()?, is_calibrated, is_fraud })
    });
    let all = labels.frauds + labels.honest;
    let share = (all > 0).then(|| labels.frauds as f64 / all as f64);
    Labelled { of: of.collect(), share }
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
