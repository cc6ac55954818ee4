//! Puts events about sessions on an event bus: of each verdict, and of each question. Rules of the bus send them on.
//!
//! At least once: an attempt is journaled after it, and a request of the state machine that comes again finds the record.
//! A bus that cannot be reached ends no session: after [`ATTEMPTS_MAX`] attempts the notice is undelivered, which the
//! journal, the log and a metric say.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::config::retry::RetryConfig;
use aws_sdk_eventbridge::config::timeout::TimeoutConfig;
use aws_sdk_eventbridge::error::DisplayErrorContext;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use graph::agent::Agent;
use journal::clock::{Clock, Hlc};
use journal::event::Event;
use journal::id::SessionId;
use journal::read;
use journal::store::{self, Store};
use workflow::metric;

use crate::delivery::{self, Delivery, Next, Outcome};
use crate::notice::{Notice, SOURCE, Worded};

/// The name of the bus in the records of deliveries.
const TARGET: &str = "eventbridge";

/// Most attempts for one notice. Each is retried by the client, and the state machine repeats the request.
pub const ATTEMPTS_MAX: u32 = 3;

/// Timeout of one attempt, with the client's own retries.
const PUT_TIMEOUT: Duration = Duration::from_secs(15);

/// Why a notice is not told yet.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] store::Error),
    /// This attempt failed, and another one is left.
    #[error("a notice could not be delivered: {0}")]
    Undelivered(String),
}

/// The bus, and how sessions are shown.
#[derive(Clone, Debug)]
pub struct Notices {
    client: Client,
    bus: String,
    agents: Arc<[Agent]>,
    /// The base of links to sessions.
    link: Option<String>,
}

impl Notices {
    pub fn new(client: Client, bus: String, agents: Arc<[Agent]>, link: Option<String>) -> Self {
        let link = link.map(|link| link.trim_end_matches('/').to_owned());
        Self { client, bus, agents, link }
    }

    /// Tells of an event, unless the bus has it.
    ///
    /// # Errors
    /// See [`Error`]: try again.
    pub async fn tell<S: Store>(
        &self,
        store: &S,
        clock: &Clock,
        event: &Event,
    ) -> Result<(), Error> {
        let told = delivery::of_session(store, &event.session).await?;
        let Next::Attempt(attempt, _) = delivery::next(&told, event, TARGET) else { return Ok(()) };
        let events = read::events(store, &event.session).await?;
        let steps = read::shown_steps(store, &event.session).await?;
        let base = self.link.as_deref();
        let link = |session: &SessionId| base.map(|base| format!("{base}/#/session/{session}"));
        let outcome = match Notice::of(event, &events, &steps, &self.agents, &link) {
            Worded::Nothing => return Ok(()),
            Worded::Over => Outcome::Over,
            Worded::Notice(notice) => match self.put(&notice).await {
                Ok(()) => Outcome::Delivered,
                Err(why) => Outcome::of_failure(attempt, ATTEMPTS_MAX, &why),
            },
        };
        let delivery = Delivery::of(event, TARGET, attempt, clock.now(), outcome);
        delivery.write(store, &Hlc::new(clock.clone(), event.stamp)).await?;
        match delivery.outcome {
            Outcome::Delivered | Outcome::Over => Ok(()),
            Outcome::Failed(why) => Err(Error::Undelivered(why)),
            Outcome::Undelivered(why) => {
                tracing::error!(session_id = %event.session, %why, "A notice could not be delivered and is given up.");
                metrics::counter!(metric::NOTICES_UNDELIVERED).increment(1);
                Ok(())
            }
        }
    }

    async fn put(&self, notice: &Notice) -> Result<(), String> {
        let entry = PutEventsRequestEntry::builder()
            .source(SOURCE)
            .detail_type(notice.why.detail_type())
            .detail(notice.bus_detail())
            .event_bus_name(&self.bus)
            .build();
        let settings = aws_sdk_eventbridge::config::Config::builder()
            .retry_config(RetryConfig::standard())
            .timeout_config(TimeoutConfig::builder().operation_timeout(PUT_TIMEOUT).build());
        let put = self.client.put_events().entries(entry).customize().config_override(settings);
        let put = put.send().await.map_err(|error| DisplayErrorContext(error).to_string())?;
        let refused = put.entries().iter().find_map(|entry| {
            let code = entry.error_code()?;
            Some(format!("{code}: {}", entry.error_message().unwrap_or_default()))
        });
        refused.map_or(Ok(()), Err)
    }
}
