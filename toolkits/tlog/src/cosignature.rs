//! Cosignatures: a witness states that it saw a checkpoint at some time, as C2SP tlog-cosignature
//! has it for Ed25519.

use crate::checkpoint::Checkpoint;
use crate::key::{
    Algorithm, ED25519_BYTES, InvalidKey, KeyName, SignerKey, Statement, VerifierKey,
};
use crate::note::Signature;
use std::num::NonZeroU64;

/// Latest time of a cosignature, in seconds since 1970. Source: C2SP tlog-cosignature.
pub const TIME_MAX: u64 = i64::MAX as u64;

const TIME_BYTES: usize = 8;

/// The secret Ed25519 key of a cosigner, such as a witness. Use a key of its own for each cosigner:
/// a cosignature does not commit to the name.
#[derive(Clone, Debug)]
pub struct Cosigner(SignerKey);

/// When a cosigner signs, in seconds since 1970: at least 1, which C2SP tlog-witness demands, and at
/// most [`TIME_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(NonZeroU64);

impl Time {
    pub fn new(seconds: u64) -> Option<Time> {
        NonZeroU64::new(seconds).filter(|time| time.get() <= TIME_MAX).map(Time)
    }

    pub fn seconds(self) -> u64 {
        self.0.get()
    }
}

impl Cosigner {
    /// The key that follows from a seed, which must be 32 secret random bytes.
    pub fn from_seed(name: KeyName, seed: &[u8; ED25519_BYTES]) -> Cosigner {
        Cosigner(SignerKey::new(name, Algorithm::Cosignature, seed))
    }

    pub fn verifier(&self) -> &VerifierKey {
        self.0.verifier()
    }

    /// The secret text form, for a file that only its owner can read.
    pub fn to_secret_text(&self) -> String {
        self.0.to_secret_text()
    }

    /// Cosigns a checkpoint. This checks nothing: [`Witness`](crate::witness::Witness) does.
    pub fn cosign(&self, checkpoint: &Checkpoint, time: Time) -> Signature {
        let message = message(time.seconds(), &checkpoint.to_string());
        let signature = self.0.sign_bytes(message.as_bytes());
        self.0.signature([time.seconds().to_be_bytes().as_slice(), &signature].concat())
    }
}

impl std::str::FromStr for Cosigner {
    type Err = InvalidKey;

    /// Reads the secret text form.
    fn from_str(text: &str) -> Result<Cosigner, InvalidKey> {
        SignerKey::parse(text, Algorithm::Cosignature).map(Cosigner)
    }
}

/// A cosignature is a time and an Ed25519 signature.
pub(crate) fn verify(
    key: &ed25519_dalek::VerifyingKey,
    text: &str,
    signature: &[u8],
) -> Option<Statement> {
    let (time, signature) = signature.split_first_chunk::<TIME_BYTES>()?;
    let time = u64::from_be_bytes(*time);
    let signature = ed25519_dalek::Signature::from_slice(signature).ok()?;
    key.verify_strict(message(time, text).as_bytes(), &signature).ok()?;
    (time <= TIME_MAX).then_some(Statement::Cosigned { time })
}

fn message(time: u64, text: &str) -> String {
    format!("cosignature/v1\ntime {time}\n{text}")
}
