//! The `add-checkpoint` call of C2SP tlog-witness, for both sides.
//!
//! A log sends an [`AddCheckpoint`] and reads the answer with [`SignedCheckpoint::add_cosignatures`].
//! A [`Witness`] decides the answer; its caller has the database and the HTTP server.

use crate::checkpoint::{Checkpoint, InvalidCheckpoint, Origin, SignedCheckpoint, parse_decimal};
use crate::cosignature::{Cosigner, Time};
use crate::hash::Hash;
use crate::key::{Verifier, VerifierKey};
use crate::note::{
    InvalidNote, NOTE_BYTES_MAX, Signature, Untrusted, Verified, parse_signatures,
    verify_signatures,
};
use crate::proof::{InvalidProof, verify_consistency};
use crate::tree::TreeHead;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt;

/// Most hashes of a consistency proof. Source: C2SP tlog-witness.
pub const PROOF_HASHES_MAX: usize = 63;

/// Longest request, in bytes: a note, after an old size and a proof.
pub const REQUEST_BYTES_MAX: usize = NOTE_BYTES_MAX + OLD_LINE_BYTES_MAX + PROOF_BYTES_MAX;

/// `old`, a space, 20 digits, and two newlines.
const OLD_LINE_BYTES_MAX: usize = 26;

/// Each line is 44 characters and a newline.
const PROOF_BYTES_MAX: usize = PROOF_HASHES_MAX * 45;

/// Content type of the answer to a wrong old size. Source: C2SP tlog-witness.
pub const SIZE_CONTENT_TYPE: &str = "text/x.tlog.size";

const TEXT_CONTENT_TYPE: &str = "text/plain; charset=utf-8";

/// The body of a request: a checkpoint, with the proof that it continues the one of `old_size`.
/// `Display` writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddCheckpoint {
    old_size: u64,
    proof: Vec<Hash>,
    checkpoint: SignedCheckpoint,
}

/// Why a body is no request. A witness answers 400.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequest {
    #[error("the request has {bytes} bytes, {REQUEST_BYTES_MAX} at most")]
    TooLong { bytes: usize },
    #[error("the request has no empty line before the checkpoint")]
    NoCheckpoint,
    #[error("the first line is not `old` and a decimal tree size")]
    OldSize,
    #[error("the proof has {hashes} hashes, {PROOF_HASHES_MAX} at most")]
    LongProof { hashes: usize },
    #[error("line {line} of the proof is not the base64 of 32 bytes")]
    Proof { line: usize },
    #[error(transparent)]
    Checkpoint(#[from] InvalidCheckpoint),
}

impl AddCheckpoint {
    /// # Errors
    ///
    /// If the proof has more than [`PROOF_HASHES_MAX`] hashes.
    pub fn new(
        old_size: u64,
        proof: Vec<Hash>,
        checkpoint: SignedCheckpoint,
    ) -> Result<AddCheckpoint, InvalidRequest> {
        match proof.len() {
            hashes if hashes > PROOF_HASHES_MAX => Err(InvalidRequest::LongProof { hashes }),
            _ => Ok(AddCheckpoint { old_size, proof, checkpoint }),
        }
    }

    /// # Errors
    ///
    /// If the body is not of the form that C2SP tlog-witness has, or exceeds the limits of this
    /// crate.
    pub fn parse(body: &[u8]) -> Result<AddCheckpoint, InvalidRequest> {
        if body.len() > REQUEST_BYTES_MAX {
            return Err(InvalidRequest::TooLong { bytes: body.len() });
        }
        let end = body.windows(2).position(|pair| pair == b"\n\n");
        let end = end.ok_or(InvalidRequest::NoCheckpoint)?;
        let head = std::str::from_utf8(&body[..end]).map_err(|_| InvalidRequest::OldSize)?;
        let mut lines = head.split('\n');
        let old_size = lines.next().and_then(|line| line.strip_prefix("old "));
        let old_size = old_size.and_then(parse_decimal).ok_or(InvalidRequest::OldSize)?;
        let hash = |(index, line): (usize, &str)| {
            line.parse().map_err(|_| InvalidRequest::Proof { line: index + 1 })
        };
        let hashes = lines.clone().count();
        if hashes > PROOF_HASHES_MAX {
            return Err(InvalidRequest::LongProof { hashes });
        }
        let proof = lines.enumerate().map(hash).collect::<Result<_, _>>()?;
        AddCheckpoint::new(old_size, proof, SignedCheckpoint::parse(&body[end + 2..])?)
    }

    /// The log that the request is about, to look up its latest checkpoint.
    pub fn origin(&self) -> &Origin {
        self.checkpoint.checkpoint().origin()
    }

    pub fn old_size(&self) -> u64 {
        self.old_size
    }

    pub fn proof(&self) -> &[Hash] {
        &self.proof
    }

    pub fn checkpoint(&self) -> &SignedCheckpoint {
        &self.checkpoint
    }
}

impl fmt::Display for AddCheckpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "old {}", self.old_size)?;
        self.proof.iter().try_for_each(|hash| writeln!(out, "{hash}"))?;
        write!(out, "\n{}", self.checkpoint)
    }
}

/// Why a witness does not cosign.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("invalid request: {0}")]
    Invalid(#[from] InvalidRequest),
    #[error("this witness does not know the log {origin}")]
    UnknownLog { origin: Origin },
    #[error("the checkpoint is not signed by its log: {0}")]
    Untrusted(Untrusted),
    #[error("the old size {old} is larger than the checkpoint's size {new}")]
    Shrunk { old: u64, new: u64 },
    /// The only refusal that asks for another request: with a proof from `size`.
    #[error("the latest cosigned checkpoint has the size {size}")]
    OtherOldSize { size: u64 },
    /// Keep the checkpoint: the log has signed it, so it may prove that the log forked.
    #[error("the checkpoint does not continue the latest one: {0}")]
    Inconsistent(InvalidProof),
}

impl Refusal {
    /// The HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            Refusal::Invalid(_) | Refusal::Shrunk { .. } => 400,
            Refusal::Untrusted(_) => 403,
            Refusal::UnknownLog { .. } => 404,
            Refusal::OtherOldSize { .. } => 409,
            Refusal::Inconsistent(_) => 422,
        }
    }

    pub fn content_type(&self) -> &'static str {
        match self {
            Refusal::OtherOldSize { .. } => SIZE_CONTENT_TYPE,
            _ => TEXT_CONTENT_TYPE,
        }
    }

    /// The body of the answer.
    pub fn body(&self) -> String {
        match self {
            Refusal::OtherOldSize { size } => format!("{size}\n"),
            _ => format!("{self}\n"),
        }
    }
}

/// Reads the size from the body of a 409 answer.
pub fn parse_size(body: &[u8]) -> Option<u64> {
    parse_decimal(std::str::from_utf8(body).ok()?.strip_suffix('\n')?)
}

/// A decision to cosign.
///
/// Store `new` as the log's latest checkpoint if it is still `old`, in one transaction, and answer
/// with [`Accepted::body`] only after that. If it is no longer `old`, decide again: otherwise two
/// requests at once could set the log back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub old: TreeHead,
    pub new: TreeHead,
    /// The checkpoint with the signatures of the log that the witness verified, and its own: what
    /// `GET <monitoring prefix>/<origin hash>/checkpoint` returns from now on.
    pub checkpoint: SignedCheckpoint,
    pub cosignature: Signature,
}

impl Accepted {
    /// The body of the answer with status 200.
    pub fn body(&self) -> String {
        format!("{}\n", self.cosignature)
    }
}

/// A log cannot be witnessed with this configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLog {
    #[error("the log {origin} has no key")]
    NoKey { origin: Origin },
    #[error("two keys of the log {origin} have the same name and ID")]
    SameKeys { origin: Origin },
    #[error("the log {origin} would sign with the key of its witness")]
    OwnKey { origin: Origin },
}

/// A witness: its key, and the logs that it knows.
#[derive(Clone, Debug)]
pub struct Witness {
    cosigner: Cosigner,
    logs: BTreeMap<Origin, Vec<VerifierKey>>,
}

impl Witness {
    pub fn new(cosigner: Cosigner) -> Witness {
        Witness { cosigner, logs: BTreeMap::new() }
    }

    pub fn verifier(&self) -> &VerifierKey {
        self.cosigner.verifier()
    }

    /// Adds a log, or replaces its keys.
    ///
    /// # Errors
    ///
    /// If there is no key, if one is there twice, or if one is that of the witness.
    pub fn add_log(&mut self, origin: Origin, keys: Vec<VerifierKey>) -> Result<(), InvalidLog> {
        let same = |a: &VerifierKey, b: &VerifierKey| (a.name(), a.id()) == (b.name(), b.id());
        if keys.is_empty() {
            return Err(InvalidLog::NoKey { origin });
        }
        if keys.iter().enumerate().any(|(at, key)| keys[..at].iter().any(|old| same(old, key))) {
            return Err(InvalidLog::SameKeys { origin });
        }
        if keys.iter().any(|key| key.public() == self.verifier().public()) {
            return Err(InvalidLog::OwnKey { origin });
        }
        self.logs.insert(origin, keys);
        Ok(())
    }

    /// Decides on a request, with the checks of C2SP tlog-witness in their order.
    ///
    /// `latest` is the latest checkpoint of [`AddCheckpoint::origin`] that this witness cosigned;
    /// [`TreeHead::empty`] if there is none.
    ///
    /// # Errors
    ///
    /// The answer of a witness that does not cosign.
    pub fn add_checkpoint(
        &self,
        request: &AddCheckpoint,
        latest: &TreeHead,
        now: Time,
    ) -> Result<Accepted, Refusal> {
        let checkpoint = request.checkpoint.checkpoint();
        let signatures = self.signatures_of_log(request)?;
        let (old, new) = (request.old_size, checkpoint.head());
        if old > new.size {
            return Err(Refusal::Shrunk { old, new: new.size });
        }
        if old != latest.size {
            return Err(Refusal::OtherOldSize { size: latest.size });
        }
        verify_consistency(latest, &new, &request.proof).map_err(Refusal::Inconsistent)?;
        let cosignature = self.cosigner.cosign(checkpoint, now);
        let checkpoint = cosigned(checkpoint, signatures, &cosignature)
            .map_err(|error| InvalidRequest::Checkpoint(error.into()))?;
        Ok(Accepted { old: *latest, new, checkpoint, cosignature })
    }

    /// The signatures of the log's known keys, verified.
    fn signatures_of_log(&self, request: &AddCheckpoint) -> Result<Vec<Signature>, Refusal> {
        let origin = request.origin();
        let Some(keys) = self.logs.get(origin) else {
            return Err(Refusal::UnknownLog { origin: origin.clone() });
        };
        let note = request.checkpoint.note();
        let verified = note.verify(keys).map_err(Refusal::Untrusted)?;
        Ok(signatures_of(note.signatures(), &verified))
    }
}

/// The first signature of each key.
fn signatures_of(signatures: &[Signature], verified: &[Verified]) -> Vec<Signature> {
    let first = |key: &Verified| {
        signatures.iter().find(|s| (s.name(), s.id()) == (&key.name, key.id)).cloned()
    };
    verified.iter().filter_map(first).collect()
}

fn cosigned(
    checkpoint: &Checkpoint,
    of_log: Vec<Signature>,
    cosignature: &Signature,
) -> Result<SignedCheckpoint, InvalidNote> {
    let mut signed = SignedCheckpoint::new(checkpoint.clone(), cosignature.clone())?;
    for signature in of_log {
        signed.add(signature)?;
    }
    // Last, as the witness adds it.
    signed.add(cosignature.clone())?;
    Ok(signed)
}

/// Why the answer of a witness adds nothing to a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAnswer {
    #[error("the witness's answer is not UTF-8")]
    NotUtf8,
    #[error("the witness's answer has no signature lines: {0}")]
    Lines(#[from] InvalidNote),
    #[error("the witness's answer does not cosign the checkpoint: {0}")]
    Untrusted(#[from] Untrusted),
}

impl SignedCheckpoint {
    /// Adds the cosignatures of known witnesses in the body of a 200 answer, and ignores others.
    ///
    /// # Errors
    ///
    /// If the body has no valid signature of a known witness, or an invalid one; the checkpoint is
    /// unchanged then.
    pub fn add_cosignatures<V: Verifier>(
        &mut self,
        body: &[u8],
        witnesses: &[V],
    ) -> Result<Vec<Verified>, InvalidAnswer> {
        if body.len() > NOTE_BYTES_MAX {
            return Err(InvalidNote::TooLong { bytes: body.len() }.into());
        }
        let body = std::str::from_utf8(body).map_err(|_| InvalidAnswer::NotUtf8)?;
        let signatures = parse_signatures(body)?;
        let verified = verify_signatures(self.note().text(), &signatures, witnesses)?;
        let mut cosigned = self.clone();
        for signature in signatures_of(&signatures, &verified) {
            cosigned.add(signature)?;
        }
        *self = cosigned;
        Ok(verified)
    }
}

/// The name under which a witness serves a log's checkpoint: `<prefix>/<origin hash>/checkpoint`.
pub fn origin_hash(origin: &Origin) -> String {
    let hash: [u8; 32] = Sha256::digest(origin.as_str()).into();
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
