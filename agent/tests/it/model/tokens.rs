//! Tokens: every token counts exactly once, and budgets bound them.

use journal::item::Item;
use journal::key;
use journal::step::{EffectKind, Ending, Step, StepBody, StepKind};
use journal::store::{Condition, Query, Store as _, query_all};
use serde_json::{Value, json};

use super::server::{Say, Server, TOKENS, Wire};
use super::world::{Went, World, detail, good_replies, models, went};

/// Tokens of all outcomes: input, output, unsettled.
fn recorded(steps: &[Step<Value>]) -> (u64, u64, u64) {
    steps.iter().fold((0, 0, 0), |(sent, received, unsettled), step| match &step.body {
        StepBody::Outcome { usage, .. } => (
            sent + u64::from(usage.input_tokens),
            received + u64::from(usage.output_tokens),
            unsettled + u64::from(usage.unsettled_tokens),
        ),
        _ => (sent, received, unsettled),
    })
}

/// The same tokens, as the graph counts them.
fn counted(went: &Went) -> (u64, u64, u64) {
    let agent = packs::find("incident").unwrap();
    let used = agent.resume(&went.steps).unwrap().usage();
    (used.input_tokens, used.output_tokens, used.unsettled_tokens)
}

#[tokio::test]
async fn a_crash_after_any_step_counts_every_token_exactly_once() {
    let good = good_replies().await;
    let chats = u64::try_from(good.len()).unwrap();
    for wire in Wire::ALL.iter().copied() {
        let says = good.clone();
        let server = Server::start(move |heard, _| says[heard.turn()].clone()).await;
        let detail = detail(wire.model(), &json!({}));
        let first = World::new(models(&server.url));
        let whole = first.work(&detail, 0).await;
        let pk = key::session(&first.session);
        let items = query_all(&first.store, Query::prefix(pk, key::STEP_PREFIX)).await.unwrap();
        for cut in 1..items.len() {
            let mut world = World::new(models(&server.url));
            world.session = first.session.clone();
            for item in &items[..cut] {
                world.store.put(Item::clone(item), Condition::Absent).await.unwrap();
            }
            let resumed = world.work(&detail, 1).await;
            assert_eq!(resumed.end(), whole.end(), "cut after {cut}");
            let (sent, received, unsettled) = recorded(&resumed.steps);
            let (each_sent, _, each_received) = TOKENS;
            assert_eq!(sent, chats * u64::from(each_sent), "cut after {cut}");
            assert_eq!(received, chats * u64::from(each_received), "cut after {cut}");
            // If a chat was next, it may have been in flight when the claim was written.
            let mut rest =
                whole.steps[cut..].iter().filter(|step| step.body.kind() != StepKind::Note);
            let next = rest.next().and_then(|step| step.body.effect()).map(|effect| effect.kind);
            assert_eq!(unsettled > 0, next == Some(EffectKind::Chat), "cut after {cut}");
            assert_eq!(counted(&resumed), (sent, received, unsettled), "cut after {cut}");
        }
    }
}

#[tokio::test]
async fn a_spent_budget_forces_a_diagnosis_and_is_journaled() {
    let good = good_replies().await;
    for wire in Wire::ALL.iter().copied() {
        let says = good.clone();
        let last = says.last().unwrap().clone();
        // The second chat exceeds 1,500 tokens. One more chat follows, for the diagnosis.
        let script = move |turn: usize, _| if turn < 2 { says[turn].clone() } else { last.clone() };
        let more = json!({"budget": {"tokens": 1_500}});
        let (went, server) = went(wire, more, script).await;
        let (ending, _, result) = went.end();
        assert_eq!((ending, &result["limit_reached"]), (Ending::Completed, &json!("tokens")));
        let notes = went.notes("budget");
        assert_eq!((&notes[0]["limit"], &notes[0]["allowed"]), (&json!("tokens"), &json!(1_500)));
        assert_eq!(server.heard().len(), 3);
        assert_eq!(counted(&went), recorded(&went.steps));
    }
}

#[tokio::test]
async fn a_budget_of_dollars_counts_the_models_cost() {
    for wire in Wire::ALL.iter().copied() {
        let arguments = json!({"lambda_name": "data-processor"}).to_string();
        let say = Say::call("get_recent_logs", &arguments);
        // Each chat costs 2,670 millionths of a dollar.
        let more = json!({"budget": {"usd": 0.005}});
        let (went, server) = went(wire, more, move |_, _| say.clone()).await;
        assert_eq!(went.notes("budget")[0]["limit"], "micro_usd");
        assert_eq!(went.notes("budget")[0]["used"], 2 * 2_670);
        assert_eq!(server.heard().len(), 3);
    }
}
