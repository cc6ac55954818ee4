//! Has witnesses cosign the newest checkpoint.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use tlog::checkpoint::SignedCheckpoint;
use tlog::key::{Verifier as _, VerifierKey};
use tlog::witness::{AddCheckpoint, parse_size};
use tokio_util::sync::CancellationToken;

use super::{parse, text};
use crate::store::Database;

/// How long a witness may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Shortest time between two checkpoints that witnesses are asked about.
const PAUSE: Duration = Duration::from_secs(1);

/// Longest answer that is read, in bytes: a hundred cosignatures.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// A witness that cosigns the log: `KEY URL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    pub key: VerifierKey,
    /// Its submission prefix.
    pub url: Url,
}

/// A text that does not name a witness.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not a witness, which is its public key, a space, and its URL")]
pub struct InvalidWitness {
    text: String,
}

impl FromStr for Witness {
    type Err = InvalidWitness;

    fn from_str(text: &str) -> Result<Self, InvalidWitness> {
        let parsed = text.trim().split_once(' ').and_then(|(key, url)| {
            let url = Url::parse(url.trim()).ok().filter(|url| url.has_host())?;
            Some(Self { key: key.parse().ok()?, url })
        });
        parsed.ok_or_else(|| InvalidWitness { text: text.to_owned() })
    }
}

/// Asks the witnesses about the newest checkpoint each time that there is another, until `stop`; then once more.
pub(crate) async fn keep_cosigning(
    store: Database,
    witnesses: Vec<Witness>,
    stop: CancellationToken,
) {
    // A redirect or a proxy would be another witness.
    let client = Client::builder().redirect(Policy::none()).no_proxy().timeout(TIMEOUT).build();
    let Ok(client) = client else {
        tracing::error!("No checkpoint is cosigned: there is no HTTP client.");
        return;
    };
    let mut asking = Asking { client, witnesses, sizes: BTreeMap::new() };
    let mut changes = store.changes();
    loop {
        changes.mark_unchanged();
        asking.all(&store).await;
        let next = async {
            tokio::time::sleep(PAUSE).await;
            // The store outlives the loop.
            let _ = changes.changed().await;
        };
        if stop.run_until_cancelled(next).await.is_none() {
            asking.all(&store).await;
            return;
        }
    }
}

struct Asking {
    client: Client,
    witnesses: Vec<Witness>,
    /// The size that each witness cosigned last, as far as is known.
    sizes: BTreeMap<String, u64>,
}

impl Asking {
    async fn all(&mut self, store: &Database) {
        if let Err(problem) = self.try_all(store).await {
            tracing::warn!(%problem, "A checkpoint was not cosigned.");
        }
    }

    async fn try_all(&mut self, store: &Database) -> Result<(), String> {
        let state = store.log().await.map_err(text)?;
        let Some(note) = state.and_then(|state| state.checkpoint) else { return Ok(()) };
        let mut signed = parse(&note)?;
        for witness in &self.witnesses.clone() {
            if signed.note().verify(&[&witness.key]).is_ok() {
                continue;
            }
            match self.ask(store, witness, &signed).await {
                Ok(body) => {
                    signed.add_cosignatures(&body, &[&witness.key]).map_err(text)?;
                    let size = signed.checkpoint().head().size;
                    store.put_checkpoint(size, signed.to_string()).await.map_err(text)?;
                }
                // The other witnesses are asked, too.
                Err(problem) => {
                    tracing::warn!(witness = %witness.key.name(), %problem, "A witness did not cosign a checkpoint.");
                }
            }
        }
        Ok(())
    }

    /// Asks one witness, and again if it knows another size than we thought.
    async fn ask(
        &mut self,
        store: &Database,
        witness: &Witness,
        signed: &SignedCheckpoint,
    ) -> Result<Vec<u8>, String> {
        let size = signed.checkpoint().head().size;
        let name = witness.key.name().to_string();
        let mut old = self.sizes.get(&name).copied().unwrap_or(0).min(size);
        for _ in 0..2 {
            let proof = store.log_consistency(old, size).await.map_err(text)?;
            let request = AddCheckpoint::new(old, proof, signed.clone()).map_err(text)?;
            let (status, body) = self.post(&witness.url, request.to_string()).await?;
            match (status, parse_size(&body)) {
                (200, _) => {
                    self.sizes.insert(name, size);
                    return Ok(body);
                }
                (409, Some(theirs)) if theirs <= size => old = theirs,
                (409, Some(theirs)) => {
                    return Err(format!("it has cosigned {theirs} leaves, but the log has {size}"));
                }
                _ => {
                    let said = String::from_utf8_lossy(&body).trim().to_owned();
                    return Err(format!("it answered {status}: {said}"));
                }
            }
        }
        Err("it changes its mind about the size that it knows".to_owned())
    }

    async fn post(&self, prefix: &Url, body: String) -> Result<(u16, Vec<u8>), String> {
        let url = format!("{}/add-checkpoint", prefix.as_str().trim_end_matches('/'));
        let lost = |error: reqwest::Error| text(error.without_url());
        let mut response = self.client.post(url).body(body).send().await.map_err(lost)?;
        let status = response.status().as_u16();
        let mut said = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(lost)? {
            said.extend_from_slice(&chunk);
            if said.len() > ANSWER_BYTES_MAX {
                return Err(format!("its answer has more than {ANSWER_BYTES_MAX} bytes"));
            }
        }
        Ok((status, said))
    }
}
