//! The order of an export: the session's partition, then its payloads, each by key.

use super::check::place;
use crate::id::SessionId;
use crate::item::Item;
use crate::key;

/// Sort position of an item in an export.
pub(crate) fn rank<'a>(session: &SessionId, item: &'a Item) -> (bool, &'a str, &'a str) {
    (item.pk != key::session(session), &item.pk, &item.sk)
}

/// The fewest records that must be moved to sort all others.
pub(super) fn misplaced(session: &SessionId, items: &[Item]) -> Vec<String> {
    let ranks: Vec<_> = items.iter().map(|item| rank(session, item)).collect();
    // Longest increasing subsequence (patience sorting): `tails[n]` is the smallest possible last
    // record of a run of n + 1, `before` the predecessor of each record in its run.
    let mut tails: Vec<usize> = Vec::new();
    let mut before = vec![None; items.len()];
    for (here, rank) in ranks.iter().enumerate() {
        let length = tails.partition_point(|tail| ranks[*tail] <= *rank);
        before[here] = length.checked_sub(1).map(|shorter| tails[shorter]);
        if length == tails.len() {
            tails.push(here);
        } else {
            tails[length] = here;
        }
    }
    let mut stays = vec![false; items.len()];
    let mut at = tails.last().copied();
    while let Some(here) = at {
        stays[here] = true;
        at = before[here];
    }
    let moved = items.iter().zip(stays).filter(|(_, stays)| !stays);
    moved.map(|(item, _)| place(session, item)).collect()
}
