//! Announcements that were written at the same time as the verdict.

use std::collections::BTreeMap;

use super::{Check, WHO_AND_WHEN};
use crate::cipher::{ENCRYPTED, is_encrypted};
use crate::clock::Stamp;
use crate::event::{About, DETAIL, ERROR_MESSAGE, Event};
use crate::item::{Hash, Item, Value};
use crate::key::attribute;
use crate::seal::announcement;
use crate::step::Step;

/// The attributes in which two encrypted records of one fact may differ besides: a verifier may have no key.
const CONTENTS: [&str; 3] = [ENCRYPTED, ERROR_MESSAGE, DETAIL];

impl Check<'_> {
    /// Whether an event says the same as a sealed event or step, except for writer and time: an
    /// announcement of a durable step, written at the same time as the verdict.
    pub(super) fn is_announced(&self, item: &Item, manifest: &BTreeMap<String, Hash>) -> bool {
        let Ok(event) = Event::from_item(item) else { return false };
        let in_its_place = item.text_opt(attribute::TIMESTAMP) == Some(&event.stamp.to_string());
        if !event.status.announces_a_step() || !in_its_place {
            return false;
        }
        let mut sealed = self.events.values().filter(|event| manifest.contains_key(&event.sk));
        // A copy with an earlier time would displace the sealed announcement.
        self.announces_its_step(item, &event)
            || sealed.any(|sealed| sealed.sk < item.sk && say_the_same(item, sealed, sealed))
    }

    /// Whether it is the announcement of the step that it refers to, by the same writer at the same time.
    /// Damage to the steps has been reported already.
    fn announces_its_step(&self, item: &Item, event: &Event) -> bool {
        let About::Step(seq) = event.about else { return false };
        let step = self.steps.get(&seq).filter(|step| !self.reported.contains(&step.sk));
        let Some((recorded, Ok(step))) = step.map(|step| (step, Step::from_item(step))) else {
            return false;
        };
        let Some((at, due)) = self.announcement(event, &step) else { return false };
        at <= event.stamp && say_the_same(item, &due, recorded)
    }

    fn announcement(&self, event: &Event, step: &Step) -> Option<(Stamp, Item)> {
        let draft = announcement(step)?;
        let item = draft.to_item(self.session, event.writer, event.stamp, None, step.expires_at);
        Some((step.stamp, item))
    }
}

/// Whether an event and another one that comes from `source` have the same attributes. If both are encrypted, their
/// contents are not compared.
fn say_the_same(item: &Item, other: &Item, source: &Item) -> bool {
    let both_encrypted = is_encrypted(item) && is_encrypted(source);
    let said = |item: &Item| -> BTreeMap<String, Value> {
        let mut said = item.attributes.clone();
        said.retain(|name, _| !WHO_AND_WHEN.contains(&name.as_str()));
        if both_encrypted {
            said.retain(|name, _| !CONTENTS.contains(&name.as_str()));
        }
        said
    };
    said(item) == said(other)
}
