//! Erasing destroys the key of an ended session's contents, then journals that it did.
//!
//! The key goes first: if the process dies in between, the tombstone in the store of keys says what to journal, and
//! [`journal()`] does it at the next start. A hold is a condition of the store of keys itself.

use journal::announce::Announcer;
use journal::cipher::{Erasure, KeyChange, KeyRefused, KeyState};
use journal::clock::{Clock, Hlc, Stamp};
use journal::event::{About, Draft, EventStatus, Writer};
use journal::id::SessionId;
use journal::item::Item;
use journal::key;
use journal::principal::Principal;
use journal::read;
use journal::status::status;
use journal::store::{self, Condition, Query, Store, query_all};
use serde_json::json;

use crate::error::{Error, Refused};
use crate::executions::Executions;
use crate::{Control, Erased};

/// Longest reason of an erasure, in bytes. Longer ones are refused.
pub const REASON_BYTES_MAX: usize = 1_024;

impl<S: Store, E: Executions> Control<S, E> {
    /// Destroys the key of a session that has ended. Erasing it again has no effect.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn erase(
        &self,
        session: &SessionId,
        reason: &str,
        by: &Principal,
    ) -> Result<Erased, Error> {
        check_reason(reason)?;
        let events = read::events(&self.store, session).await?;
        if events.is_empty() {
            return Err(Refused::NoSession(session.clone()).into());
        }
        let erasure = match self.store.session_key(session).await? {
            KeyState::None => return Err(Refused::Key(KeyRefused::NotEncrypted).into()),
            // What a kill has left undone is done again.
            KeyState::Erased(erasure) => {
                self.change(session, KeyChange::Destroy(erasure.clone())).await?;
                erasure
            }
            KeyState::Usable { .. } => {
                if !status(&events).is_terminal() {
                    return Err(Refused::NotEnded(status(&events)).into());
                }
                let initiated = events.iter().find(|it| it.status == EventStatus::SessionInitiated);
                if let Some(initiated) = initiated
                    && self.newest(initiated).await?.is_some_and(|(_, newest)| newest.is_running)
                {
                    return Err(Refused::Ending.into());
                }
                let (by, reason) = (by.clone(), reason.to_owned());
                let erasure = Erasure { at: self.clock.now(), by, reason };
                self.change(session, KeyChange::Destroy(erasure.clone())).await?;
                erasure
            }
        };
        self.executions.remove_state(session)?;
        journal(&self.store, &self.clock, session, &erasure).await?;
        Ok(Erased { session_id: session.clone(), erased_at: erasure.at })
    }

    async fn change(&self, session: &SessionId, change: KeyChange) -> Result<(), Error> {
        self.store.change_key(session, change).await.map_err(|error| match error {
            store::Error::Refused(cause) => match cause.downcast::<KeyRefused>() {
                Ok(refused) => Refused::Key(*refused).into(),
                Err(cause) => store::Error::Refused(cause).into(),
            },
            error => error.into(),
        })
    }
}

fn check_reason(reason: &str) -> Result<(), Refused> {
    let fits = (1..=REASON_BYTES_MAX).contains(&reason.trim().len());
    if fits { Ok(()) } else { Err(Refused::InvalidReason) }
}

/// Journals that a session's key was destroyed, unless the journal says so already.
///
/// # Errors
/// The journal or the store of keys cannot be written.
pub async fn journal<S: Store>(
    store: &S,
    clock: &Clock,
    session: &SessionId,
    erasure: &Erasure,
) -> Result<(), store::Error> {
    let events = read::events(store, session).await?;
    let is_journaled = events.iter().any(|event| event.status == EventStatus::SessionErased);
    if let Some(first) = events.first().filter(|_| !is_journaled) {
        // It follows every record of the session, so the verdict still counts.
        let hlc = Hlc::new(clock.clone(), Stamp::default());
        events.iter().for_each(|event| hlc.observe(event.stamp));
        let announcer = Announcer {
            store,
            hlc: &hlc,
            session,
            writer: Writer::Person,
            expires_at: first.expires_at,
        };
        let detail = json!({ "reason": erasure.reason, "destroyed_at": erasure.at.to_string() });
        let draft = Draft::new(EventStatus::SessionErased, About::Session);
        announcer.announce(&draft.by(erasure.by.clone()).with_detail(detail)).await?;
    }
    // Names the session to a later start, whose file of keys may be an older one.
    let item = Item::new(key::ERASED, session.as_str())
        .with("At", erasure.at.to_string())
        .with("By", erasure.by.to_string())
        .with("Reason", erasure.reason.as_str());
    store.put(item, Condition::Absent).await?;
    store.key_change_journaled(session).await
}

/// Destroys the keys that a restored file of keys has brought back, as the journal says they were, except those that a
/// hold protects. Returns the sessions.
///
/// # Errors
/// The journal cannot be read.
pub async fn destroy_again<S: Store>(store: &S) -> Result<Vec<SessionId>, store::Error> {
    let mut again = Vec::new();
    for item in query_all(store, Query::all(key::ERASED)).await? {
        let Ok(session) = item.sk.parse::<SessionId>() else { continue };
        // Whoever writes the file can write this row, so it destroys no key that is held, nor one of a session whose
        // events do not say so, too.
        match store.session_key(&session).await? {
            KeyState::Usable { hold: None, .. } => {}
            KeyState::Usable { hold: Some(hold), .. } => {
                tracing::error!(session_id = %session, %hold, "The journal says that this session was erased, but its key is held. The key stays.");
                continue;
            }
            KeyState::None | KeyState::Erased(_) => continue,
        }
        let events = read::events(store, &session).await?;
        if events.iter().all(|event| event.status != EventStatus::SessionErased) {
            tracing::error!(session_id = %session, "A row says that this session was erased, but no event does. Its key stays.");
            continue;
        }
        let erasure = Erasure {
            at: item.text_opt("At").and_then(|at| Stamp::parse(at).ok()).unwrap_or_default(),
            by: item.text_opt("By").and_then(|by| by.parse().ok()).unwrap_or(Principal::Unknown),
            reason: item.text_opt("Reason").unwrap_or_default().to_owned(),
        };
        store.change_key(&session, KeyChange::Destroy(erasure)).await?;
        store.key_change_journaled(&session).await?;
        again.push(session);
    }
    Ok(again)
}
