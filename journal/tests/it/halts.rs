//! The chain of halts.

use journal::clock::Stamp;
use journal::halt::{
    Change, ChangeError, HALTS_MAX, Halts, Refused, Scope, Wanted, change, history,
};
use journal::store::Store;

on_both_stores!(
    a_change_is_in_force_and_in_the_history,
    concurrent_changes_are_all_made,
    an_invalid_change_changes_nothing,
);

fn wanted(change: Change, scope: &str, by: &str) -> Wanted {
    Wanted {
        change,
        scope: scope.parse().unwrap(),
        by: by.parse().unwrap(),
        reason: "too many refunds".to_owned(),
        at: Stamp::from_millis(1_000),
    }
}

async fn a_change_is_in_force_and_in_the_history(store: impl Store) {
    assert!(!Halts::read(&store).await.unwrap().covers("a"));
    for (kind, scope, by, covered) in [
        (Change::Halt, "agent:a", "os-user:ana", (true, false)),
        (Change::Halt, "agent:a", "os-user:bo", (true, false)),
        (Change::Halt, "all", "os-user:bo", (true, true)),
        // Both of agent a, and not the one of all.
        (Change::Unhalt, "agent:a", "os-user:cy", (true, true)),
        (Change::Unhalt, "all", "os-user:cy", (false, false)),
    ] {
        change(&store, &wanted(kind, scope, by)).await.unwrap();
        let halts = Halts::read(&store).await.unwrap();
        assert_eq!((halts.covers("a"), halts.covers("b")), covered, "{kind:?} {scope}");
    }
    let records = history(&store).await.unwrap();
    let by: Vec<String> = records.iter().map(|it| it.wanted.by.to_string()).collect();
    assert_eq!(by, ["os-user:ana", "os-user:bo", "os-user:bo", "os-user:cy", "os-user:cy"]);
    for pair in records.windows(2) {
        assert_eq!((pair[1].number, &pair[1].prev_hash), (pair[0].number + 1, &pair[0].hash));
    }
    assert_eq!(records[2].in_force.len(), 3);
}

async fn concurrent_changes_are_all_made(store: impl Store) {
    let halting = (0..8).map(|n| {
        let store = store.clone();
        async move { change(&store, &wanted(Change::Halt, &format!("agent:{n}"), "unknown")).await }
    });
    for made in futures_util::future::join_all(halting).await {
        made.unwrap();
    }
    let halts = Halts::read(&store).await.unwrap();
    assert!((0..8).all(|n| halts.covers(&n.to_string())), "{halts:?}");
}

async fn an_invalid_change_changes_nothing(store: impl Store) {
    let long = "x".repeat(501);
    for (kind, reason) in [
        (Change::Halt, " "),
        (Change::Halt, "a\nb"),
        (Change::Halt, &long),
        (Change::Unhalt, "\u{1b}"),
    ] {
        let wanted = Wanted { reason: reason.to_owned(), ..wanted(kind, "all", "unknown") };
        let refused = change(&store, &wanted).await;
        assert!(matches!(refused, Err(ChangeError::Refused(Refused::Reason))), "{refused:?}");
    }
    let unhalt = change(&store, &wanted(Change::Unhalt, "all", "unknown")).await;
    assert!(matches!(unhalt, Err(ChangeError::Refused(Refused::NotHalted(Scope::All)))));
    for _ in 0..HALTS_MAX {
        change(&store, &wanted(Change::Halt, "all", "unknown")).await.unwrap();
    }
    let more = change(&store, &wanted(Change::Halt, "all", "unknown")).await;
    assert!(matches!(more, Err(ChangeError::Refused(Refused::TooMany))), "{more:?}");
    change(&store, &wanted(Change::Unhalt, "all", "unknown")).await.unwrap();
    assert!(Halts::read(&store).await.unwrap().in_force.is_empty());
}
