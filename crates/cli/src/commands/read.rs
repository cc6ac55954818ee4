//! `sessions` and `show`: lists sessions and shows one.

use std::collections::BTreeSet;
use std::sync::Arc;

use graph::effect::ToolCall;
use graph::request::Requests;
use journal::export;
use journal::halt::Halts;
use journal::listing::{Filter, SummaryCache};
use journal::read;
use journal::step::Step;
use serde_json::{Value, json};
use stack::list::{self, Wish};
use stack::view::{self, Calls, Record};
use views::waterfall::Waterfall;
use workflow::cost::{Counters, prices};

use super::cloud::Clients;
use super::halts;
use crate::args::{self, Target};
use crate::counted;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::reader::{self, Loaded, Reader};
use crate::render::axis::Axis;
use crate::render::timeline::{Row, Timeline};
use crate::render::{bill, conclusion, ending, report};
use crate::resolve::Context;

/// Most records drawn by default: the first and the last of a session.
const ROWS_MAX: usize = 200;

/// Most sessions searched for one list.
const SEARCHED_MAX: usize = 100_000;

/// Lists sessions, newest first.
///
/// # Errors
/// When the journal cannot be read.
pub async fn sessions(context: &Context, wish: args::Sessions) -> Result<Exit, Failure> {
    let reader = Reader::open(context).await?;
    let now = reader::now();
    let limit = usize::try_from(wish.limit.get()).unwrap_or(usize::MAX);
    let filter = Filter {
        since: wish.since.stamp(now),
        until: wish.until.map_or_else(reader::latest, |until| until.stamp(now)),
        after: wish.after,
        statuses: wish.status,
        agent: wish.agent,
    };
    let args::Sessions { text, state, verdict, tool, .. } = wish;
    let mut wish = Wish { filter, text, state, verdict, tool, limit, result_bytes_max: usize::MAX };
    let summary_cache = SummaryCache::default();
    let (mut shown, mut searched) = (0, 0);
    let mut table = report::Sessions::new(context.look, now);
    loop {
        let list = list::list(&reader.store, &summary_cache, &wish, &context.agents, now).await?;
        shown += list.sessions.len();
        searched += list.searched;
        if context.json {
            for session in list.sessions {
                output::json(&Record::Session(Box::new(session)))?;
            }
        } else {
            output::lines(table.rows(&list.sessions))?;
        }
        wish.limit = limit.saturating_sub(shown);
        wish.filter.after = list.more;
        if wish.filter.after.is_none() || wish.limit == 0 || searched >= SEARCHED_MAX {
            break;
        }
    }
    if shown == 0 && !context.json {
        output::say("no sessions; --since 90d searches further back");
    }
    if let Some(cursor) = wish.filter.after.filter(|_| !context.json) {
        output::hint(&format!("searched {searched} sessions; continue with: --after {cursor}"));
    }
    if context.target == Target::Local && !context.json {
        for halt in Halts::read(&reader.store).await?.in_force {
            output::say(&halts::describe(&halt));
        }
    }
    Ok(Exit::Succeeded)
}

/// Shows one session.
///
/// # Errors
/// When it does not exist or cannot be read.
pub async fn show(context: &Context, what: &args::Show) -> Result<Exit, Failure> {
    let reader = Reader::open(context).await?;
    let loaded = reader.load(&what.session).await?;
    let ahead = read::ahead(&loaded.events, reader::now()).count();
    if ahead > 0 {
        output::say(&format!(
            "warning: {ahead} events are more than 10 minutes ahead of this machine's clock; \
             check the clocks"
        ));
    }
    let counted = if what.cost { Some(count(context, &reader, &loaded).await?) } else { None };
    if context.json {
        show_json(context, &loaded, what)?;
        if let Some(Counted { journal, workflow }) = counted {
            let counters = journal + workflow.unwrap_or_default();
            output::json(&json!({
                "type": "cost", "session_id": loaded.id, "workflow_counted": workflow.is_some(),
                "counters": counters, "usd": counters.bill(), "prices_as_of": prices::AS_OF,
            }))?;
        }
    } else {
        show_text(context, &loaded, what, counted.as_ref())?
    }
    Ok(Exit::Succeeded)
}

/// A session's AWS usage, actual or projected.
struct Counted {
    journal: Counters,
    /// `None` if the execution's history is unavailable.
    workflow: Option<Counters>,
}

async fn count(context: &Context, reader: &Reader, loaded: &Loaded) -> Result<Counted, Failure> {
    let records = export::records(&reader.store, &loaded.id).await?;
    let clients = Clients::new(context).await;
    let history = clients.history(&loaded.id, loaded.execution_arn()).await.ok();
    Ok(Counted {
        journal: counted::by_journal(&records, &loaded.events, &loaded.steps),
        workflow: history.map(|history| counted::by_history(&history)),
    })
}

fn show_json(context: &Context, loaded: &Loaded, what: &args::Show) -> Result<(), Failure> {
    output::json(&Record::Session(Box::new(loaded.view(reader::now()))))?;
    for event in &loaded.events {
        output::json(&Record::Event(Box::new(view::Event::of(event))))?;
    }
    if what.steps || what.payloads {
        let mut requests = Requests::default();
        for (step, call) in loaded.steps.iter().zip(calls(context, &loaded.steps)) {
            let request = requests.of(step).filter(|_| what.payloads);
            let shown = view::Step::of(step, call).traced(&loaded.steps).with_request(request);
            output::json(&Record::Step(Box::new(shown)))?;
        }
    }
    Ok(())
}

fn show_text(
    context: &Context,
    loaded: &Loaded,
    what: &args::Show,
    counted: Option<&Counted>,
) -> Result<(), Failure> {
    let look = context.look;
    let session = loaded.view(reader::now());
    output::lines(ending::heading(look, &session))?;
    output::lines(ending::verdict(look, &session))?;
    output::line("")?;
    draw(context, loaded, what, !session.status.is_terminal())?;
    if let Some(counted) = counted {
        output::line("")?;
        output::lines(ending::costs(look, &loaded.steps))?;
        output::line("")?;
        output::lines(bill::bill(look, counted.journal, counted.workflow))?;
    }
    if let Some(question) = &session.open_question {
        output::line("")?;
        output::lines(ending::question(look, question, true))?;
    }
    if let Some(found) = &session.conclusion {
        output::line("")?;
        output::lines(conclusion::conclusion(look, found))?;
    }
    let next = ending::next(look, &session);
    if !next.is_empty() {
        output::line("")?;
    }
    output::lines(next)?;
    Ok(())
}

/// Prints a session's records on a time axis.
fn draw(
    context: &Context,
    loaded: &Loaded,
    what: &args::Show,
    is_open: bool,
) -> Result<(), Failure> {
    let look = context.look;
    let calls = calls(context, &loaded.steps);
    let drawn = loaded.steps.iter().zip(calls.iter().cloned());
    let waterfall = Waterfall::of(&loaded.events, drawn, is_open, reader::now());
    let mut timeline = Timeline::new(look, what.payloads).on(Axis::of(look, &waterfall));
    output::lines(timeline.heading())?;
    let rows_max = if what.steps || what.payloads { usize::MAX } else { ROWS_MAX };
    let rows = merged(loaded, &calls, &waterfall);
    let (first, last) = if rows.len() > rows_max {
        (&rows[..rows_max / 2], &rows[rows.len() - rows_max / 2..])
    } else {
        (&rows[..], &[][..])
    };
    for row in first {
        output::lines(timeline.row(row))?;
    }
    if !last.is_empty() {
        let between = rows.len() - first.len() - last.len();
        output::line(&format!("          … {between} more; daybook show {} --steps", loaded.id))?;
    }
    for row in last {
        output::lines(timeline.row(row))?;
    }
    Ok(())
}

/// Merges events and steps by time. At the same time, a step precedes the event that announces it.
fn merged<'a>(
    loaded: &'a Loaded,
    calls: &'a [Option<ToolCall>],
    waterfall: &Waterfall,
) -> Vec<Row<'a>> {
    // Mark both of two concurrent calls.
    let rows = &waterfall.rows;
    let beside: BTreeSet<u32> = (1..rows.len())
        .filter(|place| rows[*place].beside)
        .flat_map(|place| [rows[place - 1].seq, rows[place].seq])
        .flatten()
        .collect();
    let steps = loaded.steps.iter().zip(calls).map(|(step, call)| {
        let beside = beside.contains(&step.seq);
        (step.stamp, Row::Step { step, call: call.as_ref(), beside })
    });
    let mut merged: Vec<_> = steps.collect();
    merged.extend(loaded.events.iter().map(|event| (event.stamp, Row::Event(event))));
    merged.sort_by_key(|(stamp, _)| *stamp);
    merged.into_iter().map(|(_, row)| row).collect()
}

fn calls(context: &Context, steps: &[Step<Value>]) -> Vec<Option<ToolCall>> {
    let mut calls = Calls::new(Arc::clone(&context.agents));
    steps.iter().map(|step| calls.of(step)).collect()
}
