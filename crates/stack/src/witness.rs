//! A small witness: it cosigns a checkpoint of a log that it knows if the checkpoint continues the last one that it
//! cosigned. Whoever trusts the witness then knows that the log has one history.
//!
//! It speaks C2SP's [tlog-witness](https://c2sp.org/tlog-witness), so that it can be replaced by any other witness.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path as UrlPath, State};
use axum::http::Response;
use axum::http::header::CONTENT_TYPE;
use axum::routing::{get, post};
use journal::clock::Clock;
use journal::item::Hash;
use tlog::checkpoint::{Origin, SignedCheckpoint};
use tlog::cosignature::{Cosigner, Time};
use tlog::key::VerifierKey;
use tlog::tree::TreeHead;
use tlog::witness::{AddCheckpoint, REQUEST_BYTES_MAX, Refusal, Witness};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::keys::{self, Error, read, replace};
use crate::stack::{StartError, listen};

/// The witness's secret key.
const KEY: &str = "witness.key";

const TEXT: &str = "text/plain; charset=utf-8";

/// A witness that keeps what it has cosigned in a folder.
#[derive(Clone, Debug)]
pub struct Server {
    witness: Arc<Witness>,
    folder: Arc<Path>,
    /// One decision at a time: two at once could set a log back.
    turn: Arc<Mutex<()>>,
}

/// Why a witness does not start.
#[derive(Debug, thiserror::Error)]
pub enum WitnessError {
    #[error(transparent)]
    Keys(#[from] Error),
    #[error(transparent)]
    Log(#[from] tlog::witness::InvalidLog),
    #[error("a log's key cannot be used: {0}")]
    Key(String),
    #[error(transparent)]
    Start(#[from] StartError),
}

impl Server {
    /// A witness for these logs, with the key in `folder`, made now if there is none.
    ///
    /// # Errors
    /// The folder or a log's key cannot be used.
    pub fn open(folder: &Path, logs: Vec<VerifierKey>) -> Result<Self, WitnessError> {
        let mut witness = Witness::new(cosigner(folder)?);
        let mut by_origin: Vec<(Origin, Vec<VerifierKey>)> = Vec::new();
        for key in logs {
            let name = tlog::key::Verifier::name(&key).to_string();
            let origin: Origin = name.parse().map_err(|_| WitnessError::Key(name))?;
            match by_origin.iter_mut().find(|(of, _)| *of == origin) {
                Some((_, keys)) => keys.push(key),
                None => by_origin.push((origin, vec![key])),
            }
        }
        for (origin, keys) in by_origin {
            witness.add_log(origin, keys)?;
        }
        Ok(Self { witness: Arc::new(witness), folder: folder.into(), turn: Arc::default() })
    }

    /// The key with which readers check its cosignatures.
    pub fn key(&self) -> &VerifierKey {
        self.witness.verifier()
    }

    /// Serves until `stop`; tells the address first.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn serve(
        self,
        address: SocketAddr,
        ready: impl FnOnce(SocketAddr),
        stop: CancellationToken,
    ) -> Result<(), WitnessError> {
        let (listener, address) = listen(address).await?;
        let router = Router::new()
            .route("/add-checkpoint", post(add))
            .route("/{origin}/checkpoint", get(latest))
            .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
            .with_state(self);
        ready(address);
        guard::serve(listener, router, stop.cancelled_owned()).await;
        Ok(())
    }

    fn file(&self, origin: &Origin) -> PathBuf {
        self.folder.join(name(origin))
    }

    async fn decide(&self, body: &[u8]) -> Result<String, Answer> {
        let request = AddCheckpoint::parse(body).map_err(|error| Answer::Refused(error.into()))?;
        let file = self.file(request.origin());
        let _turn = self.turn.lock().await;
        let known = read(&file)?.map(|note| SignedCheckpoint::parse(note.as_bytes()));
        let known = known.transpose().map_err(|_| Answer::Unreadable)?;
        let head = known.map_or_else(TreeHead::empty, |known| known.checkpoint().head());
        let accepted =
            self.witness.add_checkpoint(&request, &head, now()).map_err(Answer::Refused)?;
        replace(&file, &accepted.checkpoint.to_string())?;
        Ok(accepted.body())
    }
}

/// The name of a log's file: origins may have any characters.
fn name(origin: &Origin) -> String {
    Hash::of(origin.as_str().as_bytes()).to_string()
}

fn now() -> Time {
    let seconds = u64::try_from(Clock::system().now().seconds()).unwrap_or(0).max(1);
    Time::new(seconds).unwrap_or_else(|| unreachable!("seconds of a stamp are below 2^63"))
}

fn cosigner(folder: &Path) -> Result<Cosigner, WitnessError> {
    let path = folder.join(KEY);
    if let Some(text) = keys::read_private(&path)? {
        return Ok(text.trim().parse().map_err(|_| Error::NotAKey(path))?);
    }
    let name = format!("daybook.witness/{}", hex::encode(keys::random::<8>()?));
    let name = name.parse().map_err(|_| Error::NotAKey(path.clone()))?;
    let key = Cosigner::from_seed(name, &keys::random::<32>()?);
    keys::private_folder(folder)?;
    replace(&path, &format!("{}\n", key.to_secret_text()))?;
    Ok(key)
}

/// Why there is no cosignature.
enum Answer {
    Refused(Refusal),
    /// What was cosigned last cannot be read; another history could be cosigned.
    Unreadable,
    Unavailable(Error),
}

impl From<Error> for Answer {
    fn from(error: Error) -> Self {
        Self::Unavailable(error)
    }
}

async fn add(State(server): State<Server>, body: Bytes) -> Response<Body> {
    match server.decide(&body).await {
        Ok(body) => reply(200, TEXT, body),
        Err(Answer::Refused(refusal)) => {
            reply(refusal.status(), refusal.content_type(), refusal.body())
        }
        Err(Answer::Unreadable) => reply(500, TEXT, "the last checkpoint is unreadable\n".into()),
        Err(Answer::Unavailable(error)) => {
            tracing::error!(%error, "A checkpoint was not cosigned.");
            reply(500, TEXT, "the witness cannot use its folder\n".into())
        }
    }
}

/// The latest cosigned checkpoint of a log, named by the hash of its origin.
async fn latest(State(server): State<Server>, UrlPath(origin): UrlPath<String>) -> Response<Body> {
    let is_hash = origin.len() == 64 && origin.bytes().all(|byte| byte.is_ascii_hexdigit());
    let note = if is_hash { read(&server.folder.join(&origin)).ok().flatten() } else { None };
    match note {
        Some(note) => reply(200, TEXT, note),
        None => reply(404, TEXT, "no checkpoint of this log\n".to_owned()),
    }
}

fn reply(status: u16, content_type: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = axum::http::StatusCode::from_u16(status).unwrap_or_default();
    let value = axum::http::HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, value);
    response
}
