//! The verdict of a session: which one counts, whether it fits the records, and when the session expires.

use std::collections::BTreeSet;

use super::check::{Check, WHO_AND_WHEN};
use super::{Anchor, Damage};
use crate::cipher;
use crate::clock::Stamp;
use crate::event::{About, Event, EventStatus};
use crate::item::{HASH, Hash, Item, Value};
use crate::key::attribute;
use crate::log::Leaf;
use crate::payload::Payload;
use crate::seal;
use crate::step::{Step, StepBody};

/// The attributes in which the verdicts of two concurrent sealers may differ, beyond those of all announcements: the
/// day of the time, the sealer's expiry, and the events that it saw.
const SEALERS_OWN: [&str; 2] = [attribute::DAY, attribute::EXPIRES_AT];

impl Check<'_> {
    /// Names every event that this version cannot read: its meaning is unknown.
    pub(super) fn unreadable_events(&mut self) {
        let events: Vec<_> = self.events.values().copied().collect();
        for item in events {
            if let Err(error) = Event::from_item(item)
                && self.reported.insert(item.sk.clone())
            {
                let (place, reason) = (item.sk.clone(), error.to_string());
                self.report(Damage::Unreadable { place, reason });
            }
        }
    }

    /// Reports the missing first event of a session without a manifest. A session that was closed before its first
    /// event was written has nothing but its end.
    pub(super) fn first_event(&mut self) {
        let is_first = |item: &&Item| {
            let status = item.text_opt(attribute::STATUS);
            status == Some(EventStatus::SessionInitiated.as_str())
        };
        let may_be_first = |item: &&Item| self.reported.contains(&item.sk) || is_first(item);
        let is_empty = self.events.is_empty() && self.steps.is_empty();
        let was_closed = self.steps.values().any(|item| is_end(item));
        if !is_empty
            && !was_closed
            && !self.events.values().copied().any(|item| may_be_first(&item))
        {
            self.report(Damage::FirstMissing);
        }
    }

    /// The verdict that counts: the one that the strongest anchor names, or else the earliest. A verdict that an
    /// anchor does not name is reported.
    pub(super) fn verdict(&mut self, heads: &[(Anchor, Hash)]) -> Option<Event> {
        let mut verdicts: Vec<_> = self
            .events
            .values()
            .filter_map(|item| Event::from_item(item).ok())
            .filter(|event| event.status.is_verdict())
            .collect();
        verdicts.sort_by(|a, b| (a.stamp, &a.sk).cmp(&(b.stamp, &b.sk)));
        let mut strongest_first: Vec<_> = heads.iter().collect();
        strongest_first.sort_unstable_by(|a, b| b.cmp(a));
        let named = strongest_first
            .first()
            .and_then(|(_, head)| verdicts.iter().position(|verdict| verdict.hash == *head))
            .unwrap_or(0);
        let verdict = (named < verdicts.len()).then(|| verdicts.swap_remove(named));
        let vouched = verdict.iter().filter(|verdict| {
            heads.is_empty() || heads.iter().any(|(_, head)| *head == verdict.hash)
        });
        self.vouched.extend(vouched.map(|verdict| verdict.sk.clone()));
        for (anchor, head) in strongest_first {
            let (anchor, head) = (*anchor, head.clone());
            match &verdict {
                Some(verdict) if verdict.hash == head => {}
                Some(verdict) => {
                    self.named_otherwise(&verdict.sk, &anchor.to_string(), &head, &verdict.hash);
                }
                None => self.report(Damage::VerdictMissing { anchor, head }),
            }
        }
        verdict
    }

    /// Checks that a verdict names an end step, and its ending. Damage to the step has been reported.
    pub(super) fn meaning(&mut self, verdict: &Event) {
        let problem = match verdict.about {
            About::Step(seq) => self.steps.get(&seq).and_then(|item| {
                if self.reported.contains(&item.sk) {
                    return None;
                }
                let step = Step::from_item(item).ok()?;
                match &step.body {
                    StepBody::End { ending, .. } if seal::verdict(*ending) == verdict.status => {
                        None
                    }
                    StepBody::End { ending, .. } => {
                        Some(format!("{} ended with `{ending}`", item.sk))
                    }
                    _ => Some(format!("{} is not an end", item.sk)),
                }
            }),
            _ => Some("it names no step".to_owned()),
        };
        if let Some(problem) = problem {
            self.report(Damage::Verdict { place: verdict.sk.clone(), problem });
        }
    }

    /// Reports the verdicts that say something else than the one that counts, and returns them. Two concurrent sealers
    /// write two verdicts that say the same.
    pub(super) fn contradicting(&mut self, verdict: &Event) -> BTreeSet<String> {
        let Some(counts) = self.events.get(verdict.sk.as_str()).map(|item| said(item)) else {
            return BTreeSet::new();
        };
        let others = self.events.values().filter(|item| item.sk != verdict.sk);
        let contradicting: BTreeSet<_> = others
            .filter(|item| Event::from_item(item).is_ok_and(|event| event.status.is_verdict()))
            .filter(|item| said(item) != counts)
            .map(|item| item.sk.clone())
            .collect();
        for place in &contradicting {
            self.added(place, "it is a verdict that says something else than the one that counts");
        }
        contradicting
    }

    /// Whether every record that an anchor vouches for has expired: the verdict that an anchor names and what it seals,
    /// the steps up to an anchored one, and the leaves of the log.
    ///
    /// If neither a verdict nor an anchor is left, the records themselves say when they expire. That can only turn an
    /// open session into one of which nothing is proven.
    pub(super) fn is_expired<'l>(
        &self,
        now: Stamp,
        leaves: impl Iterator<Item = &'l Leaf>,
        is_anchored: bool,
    ) -> bool {
        let records = || self.steps.values().chain(self.events.values());
        let expiry = |item: &&Item| item.number(attribute::EXPIRES_AT).ok();
        let vouched = records().filter(|item| self.vouched.contains(&item.sk)).filter_map(expiry);
        let claimed = || {
            let sound = records().filter(|item| !self.reported.contains(&item.sk));
            sound.filter(|item| item.attributes.contains_key(HASH)).filter_map(expiry).max()
        };
        let mut leaves = leaves.peekable();
        // What a leaf names is known to have been there, so the records that are left do not say when it expired.
        let is_known = is_anchored || leaves.peek().is_some();
        let expires_at = vouched.chain(leaves.filter_map(Leaf::expiry)).max();
        let expires_at = expires_at.or_else(|| if is_known { None } else { claimed() });
        expires_at.is_some_and(|expires_at| expires_at <= now.seconds())
    }
}

fn is_end(item: &Item) -> bool {
    Step::from_item(item).is_ok_and(|step| matches!(step.body, StepBody::End { .. }))
}

/// What a verdict says of the session.
fn said(item: &Item) -> Vec<(&str, &Value)> {
    let own = |name: &str| {
        WHO_AND_WHEN.contains(&name)
            || SEALERS_OWN.contains(&name)
            || Payload::has_attribute(name)
            || name == cipher::ENCRYPTED
    };
    let said = item.attributes.iter().map(|(name, value)| (name.as_str(), value));
    said.filter(|(name, _)| !own(name)).collect()
}
