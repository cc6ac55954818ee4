//! Admission: whether a session may be paid for at all.
//!
//! First the key: one item says which session holds it, and only a session that ended without success,
//! or is past its time, gives it up. Then the hourly limit: an agent has as many slots as sessions may begin in a window, and a
//! slot is free again when its window is over. Both are single conditional writes, so that of any
//! number of invokers at once no two are told the same; and both say yes again to a session that has
//! been told yes, so that a second attempt takes nothing twice.

use std::sync::Arc;
use std::time::Duration;

use graph::agent::Agent;
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

/// How long a session counts against its agent's limit.
pub const WINDOW: Duration = Duration::from_secs(3_600);

/// The attribute with the session that holds a key or a slot.
const SESSION: &str = "Session";

/// The attribute with the time at which a slot is free again, in milliseconds since 1970.
const FREE_AT: &str = "FreeAt";

/// How often a key is taken over in one admission. Each time somebody else was quicker; the last of
/// them is alive.
const TAKEOVERS_MAX: usize = 8;

/// The rules by which sessions are admitted: those of the agents' profiles, with the limits that the
/// environment sets. The default admits every session that names its agent.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The agents that have rules.
    pub agents: Arc<[Agent]>,
    /// The limits that the environment sets.
    pub limits: Limits,
}

impl Rules {
    /// The agent that runs when a trigger names none.
    pub fn default_agent(&self) -> Option<&'static str> {
        profile::default_agent(&self.agents).map(Agent::name)
    }

    /// What makes a trigger the same as another of its agent: its own key, else what the agent derives
    /// from the input. A derived key that is too long is dropped: the agent will refuse its input.
    pub fn dedupe_key(&self, trigger: &Trigger) -> Option<String> {
        let derived = || (self.agent(trigger)?.profile().dedupe_key)(&trigger.input);
        let fits = |key: &String| !key.is_empty() && key.len() <= DEDUPE_KEY_BYTES_MAX;
        trigger.dedupe_key.clone().or_else(derived).filter(fits)
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
    #[error("session {holder} is already about `{key}`")]
    Duplicate {
        /// The key.
        key: String,
        /// The session that has it.
        holder: String,
    },
    /// As many sessions as are allowed began within the window.
    #[error("circuit breaker: too many {plural} in window ({per_hour} in an hour)")]
    BreakerOpen {
        /// How many are allowed.
        per_hour: u32,
        /// What the sessions are about.
        plural: &'static str,
    },
}

impl Refusal {
    /// The code that stands in an error message.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Duplicate { .. } => "Duplicate",
            Self::BreakerOpen { .. } => "BreakerOpen",
        }
    }
}

/// What a session was admitted with, as the journal tells it; nothing where nothing was asked.
pub type Admitted = Option<Value>;

/// Admits a session, or says why not.
///
/// # Errors
/// When the store does not answer. The same request may be made again.
pub async fn admit<S: Store>(
    store: &S,
    rules: &Rules,
    request: &InvokeRequest,
    trigger: &Trigger,
) -> Result<Result<Admitted, Refusal>, Error> {
    let (key, limit) = (rules.dedupe_key(trigger), rules.rate_limit(trigger));
    if (key.is_none() && limit.is_none()) || has_begun(store, &request.session_id).await? {
        return Ok(Ok(None));
    }
    let applicant = Applicant { store, request, agent: &trigger.agent };
    if let Some(key) = &key
        && let Err(refusal) = applicant.take_key(key).await?
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

/// When each slot of an agent is free again that is taken at `now`, in no order.
///
/// # Errors
/// When the store cannot be read.
pub async fn slots_taken<S: Store>(
    store: &S,
    agent: &str,
    now: Stamp,
) -> Result<Vec<Stamp>, Error> {
    let slots = query_all(store, Query::prefix(key::admit(agent), key::SLOT_PREFIX)).await?;
    let free_at = slots.iter().filter_map(|slot| slot.number(FREE_AT).ok().map(Stamp::from_millis));
    Ok(free_at.filter(|at| *at > now).collect())
}

/// Whether the session was invoked before: then it was admitted, and stays so, however late it is
/// invoked again. The lease is made after admission and before the call; steps come after it.
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
        let item = Item::new(key::dedupe(self.agent, key), key::HOLDER)
            .with(SESSION, me)
            .with(attribute::EXPIRES_AT, self.request.expires_at);
        let mut condition = Condition::Any(vec![Condition::Absent, Condition::equals(SESSION, me)]);
        let mut holder = None;
        for _ in 0..TAKEOVERS_MAX {
            let there = match self.store.put(item.clone(), condition).await? {
                Written::Done => return Ok(Ok(())),
                // It expired between the write and the look.
                Written::Refused(None) => {
                    condition = Condition::Absent;
                    continue;
                }
                Written::Refused(Some(there)) => there,
            };
            let named = there.text(SESSION)?.to_owned();
            if !self.is_given_up(&there, &named).await? {
                holder = Some(named);
                break;
            }
            condition = Condition::equals(SESSION, named.as_str());
            holder = Some(named);
        }
        let holder = holder.unwrap_or_else(|| "unknown".to_owned());
        Ok(Err(Refusal::Duplicate { key: key.to_owned(), holder }))
    }

    /// Whether the holder has ended without success, or its time is over.
    async fn is_given_up(&self, held: &Item, holder: &str) -> Result<bool, Error> {
        let records_end =
            Stamp::from_millis(held.number(attribute::EXPIRES_AT)?.saturating_mul(1_000));
        if self.request.asked_at > records_end.before(DEADLINE_BEFORE_EXPIRY) {
            return Ok(true);
        }
        let Ok(holder) = holder.parse() else { return Ok(true) };
        let status = status(&read::events(self.store, &holder).await?);
        Ok(matches!(
            status,
            Status::Failed | Status::TimedOut | Status::Cancelled | Status::Rejected
        ))
    }

    /// The number of the slot taken, or none if there is none.
    ///
    /// All copies of a request look at the slots in one order and by one time, the state machine's. A
    /// slot that is taken by that time is never free by it again, so they come to the same slot.
    async fn take_slot(&self, per_hour: u32) -> Result<Option<u32>, Error> {
        let me = self.request.session_id.as_str();
        let pk = key::admit(self.agent);
        let now_ms = self.request.asked_at.millis();
        let taken = query_all(self.store, Query::prefix(pk.as_str(), key::SLOT_PREFIX)).await?;
        let mine = taken.iter().find(|item| item.text_opt(SESSION) == Some(me));
        if let Some(number) = mine.and_then(|mine| slot_number(&mine.sk)) {
            return Ok(Some(number));
        }
        let is_taken = |sk: &str| {
            let slot = taken.iter().find(|item| item.sk == sk);
            slot.is_some_and(|slot| slot.number(FREE_AT).is_ok_and(|at| at > now_ms))
        };
        let first = first_slot(me, per_hour);
        for number in (first..per_hour).chain(0..first) {
            let sk = key::slot(number);
            if is_taken(&sk) {
                continue;
            }
            let free_at = self.request.asked_at.after(WINDOW);
            let item = Item::new(pk.as_str(), sk)
                .with(SESSION, me)
                .with(FREE_AT, free_at.millis())
                .with(attribute::EXPIRES_AT, free_at.after(WINDOW).seconds());
            let free = Condition::Any(vec![
                Condition::Absent,
                Condition::at_most(FREE_AT, now_ms),
                Condition::equals(SESSION, me),
            ]);
            if self.store.put(item, free).await? == Written::Done {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }
}

/// Sessions begin their search at different slots, so that many at once do not all try the same.
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
    fn a_key_that_is_given_takes_precedence_over_one_that_is_derived() {
        for (detail, expected) in [
            (json!({"input": {"id": "i"}}), Some("i")),
            (json!({"input": {"id": "i"}, "dedupe_key": "k"}), Some("k")),
            (json!({"input": {"id": ""}}), None),
            (json!({"input": {"id": "x".repeat(300)}}), None),
            (json!({"input": {"id": "i"}, "agent": "other"}), None),
        ] {
            assert_eq!(rules().dedupe_key(&trigger(&detail)).as_deref(), expected, "{detail}");
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
