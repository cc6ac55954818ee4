//! `sessions` and `show`: what the journal says.

use std::sync::Arc;

use graph::effect::ToolCall;
use journal::event::Event;
use journal::listing::{self, Filter};
use journal::read;
use journal::step::Step;
use local::view::{self, Calls, Record};
use serde_json::Value;

use crate::args;
use crate::failure::{Exit, Failure};
use crate::ledger::{self, Ledger, Loaded};
use crate::output;
use crate::render::timeline::Timeline;
use crate::render::{ending, report};
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
    let loaded = Ledger::open(context).await?.load(&what.session).await?;
    let ahead = read::ahead(&loaded.events, ledger::now()).count();
    if ahead > 0 {
        output::say(&format!(
            "warning: {ahead} events are stamped more than 10 minutes ahead of this machine's clock; \
             one of the clocks is wrong"
        ));
    }
    if context.json {
        show_json(context, &loaded, what)?
    } else {
        show_text(context, &loaded, what)?
    }
    Ok(Exit::Succeeded)
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

fn show_text(context: &Context, loaded: &Loaded, what: &args::Show) -> Result<(), Failure> {
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
    if what.cost {
        output::line("")?;
        output::lines(ending::costs(look, &loaded.steps))?;
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
