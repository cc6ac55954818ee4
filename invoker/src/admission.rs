//! Admission: deduplication and the hourly limit, before a session costs anything.
//!
//! One item records which session holds a deduplication key. A session releases its key only if it ended
//! without success or its deadline has passed. For the hourly limit an agent has one slot per session in
//! the window; a slot is free again when its window has passed. Both are single conditional writes, so
//! that concurrent invokers never get the same key or slot. Both are idempotent: a session that was
//! admitted is admitted again with the same key and slot.

use std::sync::Arc;
use std::time::Duration;

use graph::agent::Agent;
use graph::panics::{self, Panicked};
use graph::profile::{self, Limits, RateLimit};
use journal::clock::Stamp;
use journal::id::SessionId;
use journal::item::{Hash, Item};
use journal::key::{self, attribute};
use journal::limits::DEADLINE_BEFORE_EXPIRY;
use journal::read;
use journal::status::{Status, status};
use journal::store::{Condition, Error, Query, Store, Written, query_all};
use serde_json::{Value, json};
use workflow::contract::InvokeRequest;
use workflow::trigger::{DEDUPE_KEY_BYTES_MAX, Trigger};

/// A slot that becomes free later than this was taken by a state machine whose clock was ahead: it is
/// free.
const FREE_WITHIN_MAX: Duration = Duration::from_secs(2 * 3_600);

/// How long a session counts against its agent's limit.
pub const WINDOW: Duration = Duration::from_secs(3_600);

/// The attribute with the session that holds a key or a slot.
const SESSION: &str = "Session";

/// The attribute with the time at which a slot becomes free, in milliseconds since 1970.
const FREE_AT: &str = "FreeAt";

/// Most attempts to take over a key in one admission. Each failed attempt means that another session took
/// it first.
const TAKEOVERS_MAX: usize = 8;

/// The rules of admission, from the agents' profiles and the environment. The default admits every session
/// that names its agent.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub agents: Arc<[Agent]>,
    /// The limits that the environment sets.
    pub limits: Limits,
}

impl Rules {
    /// The agent that runs when a trigger names none.
    pub fn default_agent(&self) -> Option<&'static str> {
        profile::default_agent(&self.agents).map(Agent::name)
    }

    /// The deduplication key of a trigger: its own, or the one that the agent derives from the input. A
    /// derived key that is too long is dropped, because the agent will refuse its input.
    ///
    /// # Errors
    /// If the agent's derivation panics.
    pub fn dedupe_key(&self, trigger: &Trigger) -> Result<Option<String>, Panicked> {
        let derive = |agent: &Agent| {
            let derive = agent.profile().dedupe_key;
            panics::caught("the derivation of the deduplication key", || derive(&trigger.input))
        };
        let key = match (&trigger.dedupe_key, self.agent(trigger)) {
            (Some(key), _) => Some(key.clone()),
            (None, Some(agent)) => derive(agent)?,
            (None, None) => None,
        };
        Ok(key.filter(|key| !key.is_empty() && key.len() <= DEDUPE_KEY_BYTES_MAX))
    }

    /// The subject of a trigger, and how long repeats attach to it.
    fn subject(&self, trigger: &Trigger) -> Result<Option<(String, Duration)>, Panicked> {
        let Some(repeats) = self.agent(trigger).and_then(|agent| agent.profile().repeats) else {
            return Ok(None);
        };
        let derive = || (repeats.subject)(&trigger.input);
        let subject = panics::caught("the derivation of the subject", derive)?;
        let subject = subject.filter(|subject| subject.len() <= DEDUPE_KEY_BYTES_MAX);
        Ok(subject.map(|subject| (subject, Duration::from_secs(repeats.window_s))))
    }

    fn rate_limit(&self, trigger: &Trigger) -> Option<RateLimit> {
        let agent = self.agent(trigger)?;
        let per_hour = self.limits.per_hour(agent)?;
        agent.profile().rate_limit.map(|limit| RateLimit { per_hour, ..limit })
    }

    fn agent(&self, trigger: &Trigger) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.name() == trigger.agent)
    }
}

/// Why a session is not admitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another session of the agent has the key.
    #[error("session {holder} already has the deduplication key `{key}`")]
    Duplicate { key: String, holder: String },
    /// An earlier session looks at the same subject.
    #[error("session {holder} already has `{subject}`: repeats within {window_s} s attach to it")]
    Repeat { subject: String, holder: String, window_s: u64 },
    /// The agent has reached its hourly limit.
    #[error("circuit breaker: too many {plural} in window (limit: {per_hour} an hour)")]
    BreakerOpen {
        /// The limit.
        per_hour: u32,
        /// The subject of the agent's sessions, such as `incidents`.
        plural: &'static str,
    },
    /// The agent's code panicked, so whether it is a duplicate is unknown.
    #[error(transparent)]
    Panicked(#[from] Panicked),
}

impl Refusal {
    /// The code in an error message.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Duplicate { .. } | Self::Repeat { .. } => "Duplicate",
            Self::BreakerOpen { .. } => "BreakerOpen",
            Self::Panicked(_) => Panicked::CODE,
        }
    }
}

/// The key and slot of an admitted session, as journaled; `None` if no rule applied.
pub type Admitted = Option<Value>;

/// Admits a session, or returns the reason for the refusal.
///
/// # Errors
/// If the store does not respond. The caller may retry.
pub async fn admit<S: Store>(
    store: &S,
    rules: &Rules,
    request: &InvokeRequest,
    trigger: &Trigger,
) -> Result<Result<Admitted, Refusal>, Error> {
    let (key, limit) = match rules.dedupe_key(trigger) {
        Ok(key) => (key, rules.rate_limit(trigger)),
        Err(panicked) => return Ok(Err(panicked.into())),
    };
    let subject = match rules.subject(trigger) {
        Ok(subject) => subject,
        Err(panicked) => return Ok(Err(panicked.into())),
    };
    let has_no_rule = key.is_none() && limit.is_none() && subject.is_none();
    if has_no_rule || has_begun(store, &request.session_id).await? {
        return Ok(Ok(None));
    }
    let applicant = Applicant { store, request, agent: &trigger.agent };
    if let Some(key) = &key
        && let Err(refusal) = applicant.take_key(key).await?
    {
        return Ok(Err(refusal));
    }
    if let Some((subject, window)) = &subject
        && let Err(refusal) = applicant.take_subject(subject, *window).await?
    {
        return Ok(Err(refusal));
    }
    let slot = match limit {
        None => None,
        Some(RateLimit { per_hour, plural, .. }) => match applicant.take_slot(per_hour).await? {
            Some(slot) => Some(slot),
            None => return Ok(Err(Refusal::BreakerOpen { per_hour, plural })),
        },
    };
    let mut admitted = json!({});
    if let Some(key) = key {
        admitted["dedupe_key"] = json!(key);
    }
    if let Some(slot) = slot {
        admitted["slot"] = json!(slot);
    }
    Ok(Ok(Some(admitted)))
}

/// For each of an agent's slots that is taken at `now`, when it becomes free; in no order.
///
/// # Errors
/// If the store cannot be read.
pub async fn slots_taken<S: Store>(
    store: &S,
    agent: &str,
    now: Stamp,
) -> Result<Vec<Stamp>, Error> {
    let slots = query_all(store, Query::prefix(key::admit(agent), key::SLOT_PREFIX)).await?;
    let free_at = slots.iter().filter_map(|slot| slot.number(FREE_AT).ok());
    Ok(free_at.filter(|at| is_taken(*at, now)).map(Stamp::from_millis).collect())
}

/// Whether the session was invoked before. Then it was admitted and stays admitted, however late the next
/// invocation is. The invoker creates the lease after admission and before the call; steps follow it.
async fn has_begun<S: Store>(store: &S, session: &SessionId) -> Result<bool, Error> {
    let end = format!("{}~", key::STEP_PREFIX);
    let query = Query::between(key::session(session), key::LEASE, &end).limited(1);
    Ok(!store.query(query).await?.items.is_empty())
}

struct Applicant<'a, S> {
    store: &'a S,
    request: &'a InvokeRequest,
    agent: &'a str,
}

impl<S: Store> Applicant<'_, S> {
    async fn take_key(&self, key: &str) -> Result<Result<(), Refusal>, Error> {
        let me = self.request.session_id.as_str();
        let guarded = self.store.guarded(key).await?;
        let item = Item::new(key::dedupe(self.agent, &guarded), key::HOLDER)
            .with(SESSION, me)
            .with(attribute::EXPIRES_AT, self.request.expires_at);
        let mut condition = Condition::Any(vec![Condition::Absent, Condition::equals(SESSION, me)]);
        let mut holder = None;
        for _ in 0..TAKEOVERS_MAX {
            let there = match self.store.put(item.clone(), condition).await? {
                Written::Done => return Ok(Ok(())),
                // It expired between the write and the read.
                Written::Refused(None) => {
                    condition = Condition::Absent;
                    continue;
                }
                Written::Refused(Some(there)) => there,
            };
            let named = there.text(SESSION)?.to_owned();
            if !self.is_released(&there, &named).await? {
                holder = Some(named);
                break;
            }
            condition = Condition::equals(SESSION, named.as_str());
            holder = Some(named);
        }
        let holder = holder.unwrap_or_else(|| "unknown".to_owned());
        Ok(Err(Refusal::Duplicate { key: key.to_owned(), holder }))
    }

    /// Whether the holder ended without success, or its deadline has passed.
    async fn is_released(&self, held: &Item, holder: &str) -> Result<bool, Error> {
        let records_end =
            Stamp::from_millis(held.number(attribute::EXPIRES_AT)?.saturating_mul(1_000));
        if self.request.asked_at > records_end.before(DEADLINE_BEFORE_EXPIRY) {
            return Ok(true);
        }
        self.has_failed(holder).await
    }

    /// Takes a subject for the window, unless an earlier session has it.
    async fn take_subject(
        &self,
        subject: &str,
        window: Duration,
    ) -> Result<Result<(), Refusal>, Error> {
        let (me, now) = (self.request.session_id.as_str(), self.request.asked_at);
        let free_at = now.after(window);
        let item = Item::new(key::dedupe(self.agent, &format!("subject/{subject}")), key::HOLDER)
            .with(SESSION, me)
            .with(FREE_AT, free_at.millis())
            .with(attribute::EXPIRES_AT, free_at.after(WINDOW).seconds());
        let mut condition = Condition::Any(vec![Condition::Absent, Condition::equals(SESSION, me)]);
        let mut holder = "unknown".to_owned();
        for _ in 0..TAKEOVERS_MAX {
            let there = match self.store.put(item.clone(), condition).await? {
                Written::Done => return Ok(Ok(())),
                Written::Refused(None) => {
                    condition = Condition::Absent;
                    continue;
                }
                Written::Refused(Some(there)) => there,
            };
            there.text(SESSION)?.clone_into(&mut holder);
            if is_taken(there.number(FREE_AT)?, now) && !self.has_failed(&holder).await? {
                break;
            }
            condition = Condition::equals(SESSION, holder.as_str());
        }
        let (subject, window_s) = (subject.to_owned(), window.as_secs());
        Ok(Err(Refusal::Repeat { subject, holder, window_s }))
    }

    /// Whether a holder ended without success.
    async fn has_failed(&self, holder: &str) -> Result<bool, Error> {
        let Ok(holder) = holder.parse() else { return Ok(true) };
        let status = status(&read::events(self.store, &holder).await?);
        Ok(matches!(
            status,
            Status::Failed | Status::TimedOut | Status::Cancelled | Status::Rejected
        ))
    }

    /// Takes a slot and returns its number; `None` if all are taken.
    ///
    /// All copies of a request try the slots in the same order and with the same time, the state machine's.
    /// A slot that is taken at that time stays taken at that time, so all copies get the same slot.
    async fn take_slot(&self, per_hour: u32) -> Result<Option<u32>, Error> {
        let me = self.request.session_id.as_str();
        let pk = key::admit(self.agent);
        let now_ms = self.request.asked_at.millis();
        let taken = query_all(self.store, Query::prefix(pk.as_str(), key::SLOT_PREFIX)).await?;
        let mine = taken.iter().find(|item| item.text_opt(SESSION) == Some(me));
        if let Some(number) = mine.and_then(|mine| slot_number(&mine.sk)) {
            return Ok(Some(number));
        }
        let free_at_of = |sk: &str| taken.iter().find(|item| item.sk == sk)?.number(FREE_AT).ok();
        let first = first_slot(me, per_hour);
        for number in (first..per_hour).chain(0..first) {
            let sk = key::slot(number);
            let found = free_at_of(&sk);
            if found.is_some_and(|at| is_taken(at, self.request.asked_at)) {
                continue;
            }
            let free_at = self.request.asked_at.after(WINDOW);
            let item = Item::new(pk.as_str(), sk)
                .with(SESSION, me)
                .with(FREE_AT, free_at.millis())
                .with(attribute::EXPIRES_AT, free_at.after(WINDOW).seconds());
            let mut free = vec![
                Condition::Absent,
                Condition::at_most(FREE_AT, now_ms),
                Condition::equals(SESSION, me),
            ];
            // If it is of a clock that was ahead, whoever replaces it first has it.
            free.extend(found.map(|at| Condition::equals(FREE_AT, at)));
            if self.store.put(item, Condition::Any(free)).await? == Written::Done {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }
}

/// Whether a slot that becomes free at `free_at`, in milliseconds since 1970, is taken at `now`.
fn is_taken(free_at: i64, now: Stamp) -> bool {
    free_at > now.millis() && free_at <= now.after(FREE_WITHIN_MAX).millis()
}

/// The slot at which a session's search starts. Sessions start at different slots, so that concurrent ones
/// rarely collide.
fn first_slot(session: &str, per_hour: u32) -> u32 {
    let hash = Hash::of(session.as_bytes());
    let spread = u32::from_str_radix(&hash.as_str()[..8], 16).unwrap_or(0);
    spread % per_hour.max(1)
}

fn slot_number(sk: &str) -> Option<u32> {
    sk.strip_prefix(key::SLOT_PREFIX)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use graph::profile::Profile;
    use serde_json::json;

    use super::*;

    static PROFILE: Profile = Profile {
        is_default: true,
        dedupe_key: |input| input["id"].as_str().map(str::to_owned),
        rate_limit: Some(RateLimit { per_hour: 7, variable: None, plural: "things" }),
        ..Profile::PLAIN
    };

    fn rules() -> Rules {
        let agents = packs::all()[..1].iter().map(|agent| agent.clone().with_profile(&PROFILE));
        Rules { agents: agents.collect(), limits: Limits::default() }
    }

    fn trigger(detail: &Value) -> Trigger {
        Trigger::parse_or(detail, rules().default_agent()).unwrap()
    }

    #[test]
    fn a_triggers_own_key_takes_precedence_over_a_derived_one() {
        for (detail, expected) in [
            (json!({"input": {"id": "i"}}), Some("i")),
            (json!({"input": {"id": "i"}, "dedupe_key": "k"}), Some("k")),
            (json!({"input": {"id": ""}}), None),
            (json!({"input": {"id": "x".repeat(300)}}), None),
            (json!({"input": {"id": "i"}, "agent": "other"}), None),
        ] {
            assert_eq!(
                rules().dedupe_key(&trigger(&detail)).unwrap().as_deref(),
                expected,
                "{detail}"
            );
        }
    }

    #[test]
    fn only_an_agent_with_a_rate_limit_is_limited() {
        let of = |rules: &Rules, detail| Some(rules.rate_limit(&trigger(&detail))?.per_hour);
        let rules = rules();
        assert_eq!(of(&rules, json!({})), Some(7));
        assert_eq!(of(&rules, json!({"agent": "other"})), None);
        let limits = Limits::of(rules.agents[0].name(), 3);
        assert_eq!(of(&Rules { limits, ..rules }, json!({})), Some(3));
    }
}
