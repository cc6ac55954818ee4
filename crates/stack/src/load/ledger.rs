//! Which sessions are at work, and which wait for their turn. No IO; the caller says what time it is.

use std::collections::BTreeMap;

use journal::clock::Stamp;
use journal::id::SessionId;
use workflow::limits::START_GRACE;

use super::{Limits, New};

/// A session that waits for its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Queued {
    pub(super) session: SessionId,
    pub(super) agent: String,
    /// The invocation that was declined last.
    pub(super) invocation: u32,
    /// The epoch that it may supersede.
    pub(super) epoch: u32,
    /// When the session's records expire, in seconds since 1970.
    pub(super) expires_at: i64,
}

/// What the poller's judgement says of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// It waits, or is to be invoked again.
    Paused,
    Ended,
}

/// A session's place among those at work.
#[derive(Debug)]
struct Permit {
    agent: String,
    since: Stamp,
    /// Set until its agent is invoked: its turn has come, and its workflow has not asked again yet.
    awaited: Option<Queued>,
}

#[derive(Debug)]
struct Ticket {
    agent: String,
    number: u64,
}

/// An accepted event whose session has not asked yet.
#[derive(Debug)]
struct Coming {
    at: Stamp,
    agent: Option<String>,
    /// Whether it is expected to wait in the queue.
    waits: bool,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) is_draining: bool,
    permits: BTreeMap<SessionId, Permit>,
    /// The number of permits by agent.
    held: BTreeMap<String, usize>,
    /// By agent, in the order of tickets.
    queues: BTreeMap<String, BTreeMap<u64, Queued>>,
    tickets: BTreeMap<SessionId, Ticket>,
    newest_ticket: u64,
    coming: BTreeMap<String, Coming>,
    /// How many of those are expected to wait in the queue.
    coming_to_wait: usize,
}

impl Ledger {
    /// Whether a session may begin now. In a drain, none may.
    pub(super) fn ask(
        &mut self,
        limits: &Limits,
        session: &SessionId,
        agent: &str,
        now: Stamp,
    ) -> bool {
        self.forget(session.as_str());
        if self.is_draining {
            self.take_permit(session);
            return false;
        }
        if let Some(permit) = self.permits.get_mut(session) {
            (permit.since, permit.awaited) = (now, None);
            return true;
        }
        let may = !self.tickets.contains_key(session) && self.has_room(limits, agent);
        if may {
            self.permit(session, agent, now, None);
        }
        may
    }

    /// Asks again, and queues the session if it may not begin. One that is queued keeps its place.
    pub(super) fn ask_or_queue(&mut self, limits: &Limits, asks: Queued, now: Stamp) -> bool {
        if self.ask(limits, &asks.session, &asks.agent, now) {
            return true;
        }
        let number = match self.tickets.get(&asks.session) {
            Some(ticket) => ticket.number,
            None => {
                self.newest_ticket += 1;
                self.newest_ticket
            }
        };
        let ticket = Ticket { agent: asks.agent.clone(), number };
        self.tickets.insert(asks.session.clone(), ticket);
        self.queues.entry(asks.agent.clone()).or_default().insert(number, asks);
        false
    }

    /// Notes what the poller has judged.
    pub(super) fn judged(&mut self, session: &SessionId, judged: Judged) {
        let is_begun = self.permits.get(session).is_some_and(|permit| permit.awaited.is_none());
        if judged == Judged::Ended {
            self.forget(session.as_str());
            self.take_ticket(session);
            self.take_permit(session);
        } else if is_begun {
            // The judgement may be older than a turn that has come since, but not than an invocation.
            self.take_permit(session);
        }
    }

    /// The sessions whose turn has come, oldest first. They have permits.
    pub(super) fn release(&mut self, limits: &Limits, now: Stamp) -> Vec<Queued> {
        let mut released = Vec::new();
        while let Some(queued) = self.next(limits) {
            self.tickets.remove(&queued.session);
            self.permit(&queued.session, &queued.agent, now, Some(queued.clone()));
            released.push(queued);
        }
        released
    }

    /// Takes the session out of the queue that has waited longest, of those with room.
    fn next(&mut self, limits: &Limits) -> Option<Queued> {
        if self.is_draining {
            return None;
        }
        let first = |(agent, queue): (&String, &BTreeMap<u64, Queued>)| {
            Some((*queue.first_key_value()?.0, agent.clone()))
        };
        let with_room = self.queues.iter().filter(|(agent, _)| self.has_room(limits, agent));
        let (number, agent) = with_room.filter_map(first).min()?;
        let queue = self.queues.get_mut(&agent)?;
        let queued = queue.remove(&number);
        if queue.is_empty() {
            self.queues.remove(&agent);
        }
        queued
    }

    /// Whether the session's turn has come, and it has not asked since.
    pub(super) fn is_awaited(&self, session: &SessionId) -> bool {
        self.permits.get(session).is_some_and(|permit| permit.awaited.is_some())
    }

    /// The sessions whose turn has come, and that have not asked since.
    pub(super) fn awaited(&self) -> Vec<Queued> {
        self.permits.values().filter_map(|permit| permit.awaited.clone()).collect()
    }

    pub(super) fn has_permit(&self, session: &SessionId) -> bool {
        self.permits.contains_key(session)
    }

    /// The sessions that began before this time. Forgets what was expected before and has not come.
    pub(super) fn begun_before(&mut self, now: Stamp) -> Vec<SessionId> {
        let before = now.before(START_GRACE);
        let is_late = |coming: &Coming| coming.at <= before;
        let late = self.coming.iter().filter(|(_, it)| is_late(it)).map(|(name, _)| name.clone());
        late.collect::<Vec<_>>().iter().for_each(|name| self.forget(name));
        let is_old = |permit: &Permit| permit.since <= before;
        let old = self.permits.iter().filter(|(_, permit)| is_old(permit));
        let (begun, absent): (Vec<_>, Vec<_>) =
            old.partition(|(_, permit)| permit.awaited.is_none());
        let begun = begun.into_iter().map(|(session, _)| session.clone()).collect();
        let absent: Vec<_> = absent.into_iter().map(|(session, _)| session.clone()).collect();
        absent.iter().for_each(|session| self.take_permit(session));
        begun
    }

    /// Admits as many of these new sessions, in order, as the queue has room for.
    pub(super) fn admit(&mut self, limits: &Limits, new: &[New], now: Stamp) -> usize {
        if self.is_draining {
            return 0;
        }
        for (admitted, New { name, agent }) in new.iter().enumerate() {
            let waits = !self.would_begin(limits, agent.as_deref());
            if waits && self.queued() + self.coming_to_wait >= limits.queue {
                return admitted;
            }
            self.forget(name);
            self.coming_to_wait += usize::from(waits);
            self.coming.insert(name.clone(), Coming { at: now, agent: agent.clone(), waits });
        }
        new.len()
    }

    /// Whether a new session would begin at once, as far as is known.
    fn would_begin(&self, limits: &Limits, agent: Option<&str>) -> bool {
        let ahead = self.coming.len() - self.coming_to_wait;
        if self.permits.len() + ahead >= limits.at_work {
            return false;
        }
        let Some((agent, most)) = agent.and_then(|it| Some((it, *limits.by_agent.get(it)?))) else {
            return true;
        };
        let is_ahead = |it: &&Coming| !it.waits && it.agent.as_deref() == Some(agent);
        let ahead = self.coming.values().filter(is_ahead).count();
        self.at_work_of(agent) + ahead < most
    }

    /// Forgets a new session that has asked, or was not started.
    pub(super) fn forget(&mut self, name: &str) {
        if let Some(coming) = self.coming.remove(name) {
            self.coming_to_wait -= usize::from(coming.waits);
        }
    }

    /// Notes the end of a session's execution. Its agent may still work.
    pub(super) fn execution_ended(&mut self, session: &SessionId) {
        self.take_ticket(session);
        if self.is_awaited(session) {
            self.take_permit(session);
        }
    }

    pub(super) fn at_work(&self) -> usize {
        self.permits.len()
    }

    /// Those whose agent was invoked, oldest id first.
    pub(super) fn begun(&self) -> impl Iterator<Item = &SessionId> {
        self.permits.iter().filter(|(_, it)| it.awaited.is_none()).map(|(session, _)| session)
    }

    pub(super) fn at_work_of(&self, agent: &str) -> usize {
        self.held.get(agent).copied().unwrap_or(0)
    }

    pub(super) fn queued(&self) -> usize {
        self.tickets.len()
    }

    pub(super) fn queued_of(&self, agent: &str) -> usize {
        self.queues.get(agent).map_or(0, BTreeMap::len)
    }

    fn has_room(&self, limits: &Limits, agent: &str) -> bool {
        let most = limits.by_agent.get(agent).copied().unwrap_or(usize::MAX);
        self.permits.len() < limits.at_work && self.at_work_of(agent) < most
    }

    fn permit(&mut self, session: &SessionId, agent: &str, since: Stamp, awaited: Option<Queued>) {
        *self.held.entry(agent.to_owned()).or_default() += 1;
        let permit = Permit { agent: agent.to_owned(), since, awaited };
        let former = self.permits.insert(session.clone(), permit);
        assert!(former.is_none(), "a session has one permit");
    }

    fn take_permit(&mut self, session: &SessionId) {
        let Some(Permit { agent, .. }) = self.permits.remove(session) else { return };
        if let Some(held) = self.held.get_mut(&agent) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&agent);
            }
        }
    }

    fn take_ticket(&mut self, session: &SessionId) {
        let Some(Ticket { agent, number }) = self.tickets.remove(session) else { return };
        if let Some(queue) = self.queues.get_mut(&agent) {
            queue.remove(&number);
            if queue.is_empty() {
                self.queues.remove(&agent);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(second: u64) -> Stamp {
        Stamp::from_millis(1_700_000_000_000).after(Duration::from_secs(second))
    }

    fn session(n: usize) -> SessionId {
        format!("0190a5c4-7b1e-7cc3-98c4-dc0c0c07{n:04}").parse().unwrap()
    }

    fn asks(n: usize, agent: &str) -> Queued {
        let agent = agent.to_owned();
        Queued { session: session(n), agent, invocation: 1, epoch: 0, expires_at: 0 }
    }

    fn limits(at_work: usize, by_agent: &[(&str, usize)], queue: usize) -> Limits {
        let by_agent = by_agent.iter().map(|(name, most)| ((*name).to_owned(), *most)).collect();
        Limits { at_work, by_agent, queue, executions: 1_000, disk_bytes: None }
    }

    fn released(ledger: &mut Ledger, limits: &Limits) -> Vec<SessionId> {
        ledger.release(limits, at(0)).into_iter().map(|queued| queued.session).collect()
    }

    fn new(names: std::ops::Range<usize>, agent: &str) -> Vec<New> {
        names.map(|n| New { name: session(n).to_string(), agent: Some(agent.to_owned()) }).collect()
    }

    #[test]
    fn turns_come_in_the_order_of_asking() {
        let (mut ledger, limits) = (Ledger::default(), limits(2, &[], 10));
        let begun: Vec<bool> =
            (0..5).map(|n| ledger.ask_or_queue(&limits, asks(n, "a"), at(0))).collect();
        assert_eq!(begun, [true, true, false, false, false]);
        assert_eq!((ledger.at_work(), ledger.queued()), (2, 3));
        // Asking again keeps the place.
        assert!(!ledger.ask_or_queue(&limits, asks(3, "a"), at(1)));
        ledger.judged(&session(1), Judged::Ended);
        assert_eq!(released(&mut ledger, &limits), [session(2)]);
        ledger.judged(&session(3), Judged::Ended);
        ledger.judged(&session(0), Judged::Paused);
        assert_eq!(released(&mut ledger, &limits), [session(4)]);
        assert!(ledger.ask(&limits, &session(4), "a", at(2)));
    }

    #[test]
    fn a_full_agent_does_not_hold_up_another() {
        let (mut ledger, limits) = (Ledger::default(), limits(3, &[("a", 1)], 10));
        assert!(ledger.ask_or_queue(&limits, asks(0, "a"), at(0)));
        assert!(!ledger.ask_or_queue(&limits, asks(1, "a"), at(0)));
        assert!(ledger.ask_or_queue(&limits, asks(2, "b"), at(0)));
        assert_eq!(released(&mut ledger, &limits), []);
        ledger.judged(&session(0), Judged::Ended);
        assert_eq!(released(&mut ledger, &limits), [session(1)]);
        assert_eq!((ledger.at_work_of("a"), ledger.queued_of("a")), (1, 0));
    }

    #[test]
    fn an_older_judgement_takes_no_new_turn() {
        let (mut ledger, limits) = (Ledger::default(), limits(1, &[], 10));
        ledger.ask_or_queue(&limits, asks(0, "a"), at(0));
        ledger.ask_or_queue(&limits, asks(1, "a"), at(0));
        ledger.judged(&session(0), Judged::Ended);
        assert_eq!(released(&mut ledger, &limits), [session(1)]);
        ledger.judged(&session(1), Judged::Paused);
        assert!(ledger.is_awaited(&session(1)));
        assert_eq!(ledger.awaited(), [asks(1, "a")]);
        // One that does not come for its turn leaves it to others.
        assert_eq!(ledger.begun_before(at(3_600)), []);
        assert_eq!(ledger.at_work(), 0);
    }

    #[test]
    fn a_drain_lets_nothing_begin() {
        let (mut ledger, limits) = (Ledger::default(), limits(1, &[], 10));
        ledger.ask_or_queue(&limits, asks(0, "a"), at(0));
        ledger.ask_or_queue(&limits, asks(1, "a"), at(0));
        ledger.is_draining = true;
        ledger.judged(&session(0), Judged::Ended);
        assert_eq!(released(&mut ledger, &limits), []);
        assert!(!ledger.ask_or_queue(&limits, asks(2, "a"), at(0)));
        assert_eq!((ledger.at_work(), ledger.queued()), (0, 2));
        assert_eq!(ledger.admit(&limits, &new(3..4, "a"), at(0)), 0);
    }

    #[test]
    fn new_sessions_are_admitted_up_to_the_queue() {
        let (mut ledger, limits) = (Ledger::default(), limits(3, &[("a", 1)], 2));
        // One begins, two wait.
        assert_eq!(ledger.admit(&limits, &new(0..5, "a"), at(0)), 3);
        assert_eq!(ledger.admit(&limits, &new(5..6, "a"), at(0)), 0);
        assert_eq!(ledger.admit(&limits, &new(6..7, "b"), at(0)), 1);
        for n in 0..3 {
            ledger.ask_or_queue(&limits, asks(n, "a"), at(0));
        }
        assert_eq!(ledger.queued(), 2);
        assert_eq!(ledger.admit(&limits, &new(7..8, "a"), at(0)), 0);
        ledger.judged(&session(2), Judged::Ended);
        assert_eq!(ledger.admit(&limits, &new(7..8, "a"), at(0)), 1);
        ledger.forget(session(7).as_str());
        assert_eq!(ledger.admit(&limits, &new(8..9, "a"), at(0)), 1);
        // An event whose session never asks is forgotten.
        ledger.begun_before(at(3_600));
        assert_eq!(ledger.admit(&limits, &new(9..10, "a"), at(3_600)), 1);
    }
}
