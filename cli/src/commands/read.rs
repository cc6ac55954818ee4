//! `sessions` and `show`: what the journal says.

use std::collections::BTreeSet;
use std::sync::Arc;

use graph::effect::ToolCall;
use journal::export;
use journal::listing::{Filter, Shelf};
use journal::read;
use journal::step::Step;
use local::list::{self, Wish};
use local::view::{self, Calls, Record};
use serde_json::{Value, json};
use timeline::waterfall::Waterfall;
use workflow::cost::{Counters, prices};

use super::cloud::Clients;
use crate::args;
use crate::counted;
use crate::failure::{Exit, Failure};
use crate::ledger::{self, Ledger, Loaded};
use crate::output;
use crate::render::axis::Axis;
use crate::render::timeline::{Row, Timeline};
use crate::render::{bill, ending, report};
use crate::resolve::Context;

/// Most records of a session that are drawn unless all are asked for: its first and its last.
const ROWS_MAX: usize = 200;

/// Most sessions that are looked at for one list.
const SEARCHED_MAX: usize = 100_000;

/// Lists sessions, newest first.
///
/// # Errors
/// When the journal cannot be read.
pub async fn sessions(context: &Context, wish: args::Sessions) -> Result<Exit, Failure> {
    let ledger = Ledger::open(context).await?;
    let now = ledger::now();
    let limit = usize::try_from(wish.limit.get()).unwrap_or(usize::MAX);
    let filter = Filter {
        since: wish.since.stamp(now),
        until: wish.until.map_or_else(ledger::latest, |until| until.stamp(now)),
        after: wish.after,
        statuses: wish.status,
        agent: wish.agent,
    };
    let mut wish = Wish { filter, text: wish.text, limit, result_bytes_max: usize::MAX };
    let shelf = Shelf::default();
    let (mut shown, mut searched) = (0, 0);
    let mut table = report::Sessions::new(context.look, now);
    loop {
        let list = list::list(&ledger.store, &shelf, &wish, now).await?;
        shown += list.sessions.len();
        searched += list.searched;
        if context.json {
            for session in list.sessions {
                output::json(&Record::Session(session))?;
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
        output::say("no sessions; --since 90d looks further back");
    }
    if let Some(place) = wish.filter.after.filter(|_| !context.json) {
        output::hint(&format!("{searched} sessions were looked at; older ones: --after {place}"));
    }
    Ok(Exit::Succeeded)
}

/// Shows one session.
///
/// # Errors
/// When it is not there or cannot be read.
pub async fn show(context: &Context, what: &args::Show) -> Result<Exit, Failure> {
    let ledger = Ledger::open(context).await?;
    let loaded = ledger.load(&what.session).await?;
    let ahead = read::ahead(&loaded.events, ledger::now()).count();
    if ahead > 0 {
        output::say(&format!(
            "warning: {ahead} events are stamped more than 10 minutes ahead of this machine's clock; \
             one of the clocks is wrong"
        ));
    }
    let counted = if what.cost { Some(count(context, &ledger, &loaded).await?) } else { None };
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

/// What a session has asked of the cloud, or would have.
struct Counted {
    journal: Counters,
    /// Nothing if nobody can be asked for the execution's history.
    workflow: Option<Counters>,
}

async fn count(context: &Context, ledger: &Ledger, loaded: &Loaded) -> Result<Counted, Failure> {
    let records = export::records(&ledger.store, &loaded.id).await?;
    let clients = Clients::new(context).await;
    let history = clients.history(&loaded.id, loaded.execution_arn()).await.ok();
    Ok(Counted {
        journal: counted::by_journal(&records, &loaded.events, &loaded.steps),
        workflow: history.map(|history| counted::by_history(&history)),
    })
}

fn show_json(context: &Context, loaded: &Loaded, what: &args::Show) -> Result<(), Failure> {
    output::json(&Record::Session(loaded.view(ledger::now())))?;
    for event in &loaded.events {
        output::json(&Record::Event(view::Event::of(event)))?;
    }
    if what.steps || what.payloads {
        for (step, call) in loaded.steps.iter().zip(calls(context, &loaded.steps)) {
            output::json(&Record::Step(view::Step::of(step, call)))?;
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
    let session = loaded.view(ledger::now());
    output::lines(ending::heading(look, &session))?;
    draw(context, loaded, what, !session.status.is_terminal())?;
    output::line("")?;
    output::lines(ending::verdict(look, &session))?;
    if let Some(counted) = counted {
        output::line("")?;
        output::lines(ending::costs(look, &loaded.steps))?;
        output::line("")?;
        output::lines(bill::bill(look, counted.journal, counted.workflow))?;
    }
    if let Some(question) = &session.open_question {
        output::line("")?;
        output::lines(ending::question(look, question))?;
    }
    if let Some(result) = &session.result {
        output::line("")?;
        output::lines(ending::result(look, result))?;
    }
    let next = ending::next(look, &session);
    if !next.is_empty() {
        output::line("")?;
    }
    output::lines(next)?;
    Ok(())
}

/// Draws a session's records on one axis.
fn draw(
    context: &Context,
    loaded: &Loaded,
    what: &args::Show,
    is_open: bool,
) -> Result<(), Failure> {
    let look = context.look;
    let calls = calls(context, &loaded.steps);
    let drawn = loaded.steps.iter().zip(calls.iter().cloned());
    let waterfall = Waterfall::of(&loaded.events, drawn, is_open, ledger::now());
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

/// Events and steps in order of time; of one instant, what was decided before what announces it.
fn merged<'a>(
    loaded: &'a Loaded,
    calls: &'a [Option<ToolCall>],
    waterfall: &Waterfall,
) -> Vec<Row<'a>> {
    // Two calls at once are each beside the other.
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
