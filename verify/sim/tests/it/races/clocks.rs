//! Writers whose clocks are five minutes apart.

use journal::store::Store;
use sim::interleave::Limits;

use super::bench::{Bench, at_least};
use super::endings::{cancelling, judge_cancelling};
use super::stage::{Skews, Stage};

on_both_stores!(
    causes_precede_effects_with_clocks_ten_minutes_apart,
    a_runner_with_a_slow_clock_takes_over_from_a_fast_one,
);

const SKEW_NS: i64 = 300_000_000_000;

/// An agent, a person and a poller, each with a correct, a fast and a slow clock.
fn causes_precede_effects_with_clocks_ten_minutes_apart<S: Store>(bench: &Bench<S>) {
    let orders = [[-1, 0, 1], [-1, 1, 0], [0, -1, 1], [0, 1, -1], [1, -1, 0], [1, 0, -1]];
    for [agent, person, poller] in orders {
        let skews = Skews {
            agent_ns: agent * SKEW_NS,
            person_ns: person * SKEW_NS,
            poller_ns: poller * SKEW_NS,
        };
        bench.race(
            at_least(15, Limits::NONE.interrupted(1)),
            at_least(15, Limits::NONE.interrupted(1)),
            async |race| cancelling(race, skews).await,
            async |race, stage| judge_cancelling(race, stage, true).await,
        );
    }
}

fn a_runner_with_a_slow_clock_takes_over_from_a_fast_one<S: Store>(bench: &Bench<S>) {
    bench.race(
        at_least(200, Limits::NONE.interrupted(2)),
        at_least(14, Limits::NONE.interrupted(1)),
        async |race| {
            let stage = Stage::begun(race).await;
            let ahead = stage.clone();
            race.enter("ahead", sim::interleave::Frailty::Sound, move |gate| {
                let stage = ahead.clone();
                async move {
                    let host = stage.host_ahead(gate, SKEW_NS);
                    stage.invoke("ahead", &host, 10, 0).await;
                }
            });
            let (behind, learned) = (stage.clone(), journal::key::step(2));
            let cue = move |item: &journal::item::Item| item.sk == learned;
            race.enter_after(cue, "behind", sim::interleave::Frailty::Sound, move |gate| {
                let stage = behind.clone();
                async move {
                    let host = stage.host_ahead(gate, -SKEW_NS);
                    stage.invoke("behind", &host, 20, 1).await;
                }
            });
            stage
        },
        async |race, stage| stage.judge(race).await,
    );
}
