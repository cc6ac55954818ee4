//! Programs at the limits; `make verify` runs them.

use journal::limits::PAYLOAD_BYTES_MAX;

use super::*;

on_both_hosts!(
    a_program_has_ten_thousand_effects_and_replays_them,
    a_result_at_the_limit_is_journaled_and_a_larger_one_is_not,
);

async fn a_program_has_ten_thousand_effects_and_replays_them<S: Suite>() {
    for kit in S::kits_at_length() {
        let whole = World::<S>::of(kit).await;
        assert_eq!(whole.completed("count", 10_000).await["sum"], 49_995_000, "{kit:?}");
        let steps = whole.steps().await;
        assert_eq!(outcomes(&steps).len(), 10_000);
        let world = whole.cut(steps.len() - 2).await;
        assert_eq!(world.completed("count", 10_000).await["sum"], 49_995_000, "{kit:?}");
        assert_eq!(outcomes(&world.steps().await).len(), 10_000, "{kit:?}");
    }
}

async fn a_result_at_the_limit_is_journaled_and_a_larger_one_is_not<S: Suite>() {
    // The kit's limit leaves room for the record around the value; the text has two quotes.
    let largest = u32::try_from(PAYLOAD_BYTES_MAX - 1024 - 2).unwrap();
    for kit in Kit::all() {
        let world = World::<S>::of(kit).await;
        assert_eq!(world.completed("large", largest).await["length"], largest, "{kit:?}");
        let found = World::<S>::of(kit).await.failed("large", largest + 1, json!({})).await;
        assert!(found.starts_with("ProgramError: "), "{kit:?}: {found}");
        assert!(found.contains("4193280") || found.contains("4,193,280"), "{kit:?}: {found}");
    }
}
