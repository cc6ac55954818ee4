//! `sessions` and `show`: what the journal says.

use std::sync::Arc;

use graph::effect::ToolCall;
use journal::event::Event;
use journal::export;
use journal::listing::{self, Filter};
use journal::read;
use journal::step::Step;
use local::view::{self, Calls, Record};
use serde_json::{Value, json};
use workflow::cost::{Counters, prices};

use super::cloud::Clients;
use crate::args;
use crate::counted;
use crate::failure::{Exit, Failure};
use crate::ledger::{self, Ledger, Loaded};
use crate::output;
use crate::render::timeline::Timeline;
use crate::render::{bill, ending, report};
use crate::resolve::Context;

/// Lists sessions, newest first.
///
/// # Errors
/// When the journal cannot be read.
pub async fn sessions(context: &Context, filter: args::Sessions) -> Result<Exit, Failure> {
    let ledger = Ledger::open(context).await?;
    let now = ledger::now();
    let filter = Filter {
        since: now.before(filter.since),
        until: ledger::latest(),
        status: filter.status,
        agent: filter.agent,
        limit: usize::try_from(filter.limit.get()).unwrap_or(usize::MAX),
    };
    let summaries = listing::summaries(&ledger.store, &filter).await?;
    if context.json {
        for summary in &summaries {
            let loaded = ledger.load(summary.session.as_str()).await?;
            output::json(&Record::Session(loaded.view(now)))?;
        }
    } else if summaries.is_empty() {
        output::say("no sessions; --since 90d looks further back");
    } else {
        output::lines(report::sessions(context.look, &summaries, now))?;
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
    let mut timeline = Timeline::new(look, what.payloads);
    for record in merged(context, loaded, what.steps || what.payloads) {
        match record {
            Merged::Event(event) => output::lines(timeline.event(event))?,
            Merged::Step(step, call) => output::lines(timeline.step(step, call.as_ref()))?,
        }
    }
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
    Ok(())
}

enum Merged<'a> {
    Event(&'a Event),
    Step(&'a Step<Value>, Option<ToolCall>),
}

/// Events and steps in order of time; of one instant, what was decided before what announces it.
fn merged<'a>(context: &Context, loaded: &'a Loaded, with_steps: bool) -> Vec<Merged<'a>> {
    let mut merged = Vec::new();
    if with_steps {
        let steps = loaded.steps.iter().zip(calls(context, &loaded.steps));
        merged.extend(steps.map(|(step, call)| (step.stamp, Merged::Step(step, call))));
    }
    merged.extend(loaded.events.iter().map(|event| (event.stamp, Merged::Event(event))));
    merged.sort_by_key(|(stamp, _)| *stamp);
    merged.into_iter().map(|(_, record)| record).collect()
}

fn calls(context: &Context, steps: &[Step<Value>]) -> Vec<Option<ToolCall>> {
    let mut calls = Calls::new(Arc::clone(&context.agents));
    steps.iter().map(|step| calls.of(step)).collect()
}
