//! What `verify` requires.

use std::path::PathBuf;

use journal::item::Hash;
use tlog::key::VerifierKey;

use crate::args;
use crate::failure::Failure;

/// What a verification requires besides records that fit together.
#[derive(Clone, Debug)]
pub struct Checks {
    /// `--head`.
    pub head: Option<Hash>,
    /// `--key`.
    pub key: Option<PathBuf>,
    /// `--witness`.
    pub witnesses: Vec<VerifierKey>,
    /// `--checkpoint`.
    pub checkpoint: Option<PathBuf>,
}

pub(super) fn checks(verify: args::Verify) -> Result<Checks, Failure> {
    let witness = |text: &String| {
        let hint = "`daybook witness serve` prints its key when it starts";
        text.parse().map_err(|error| Failure::usage(format!("--witness: {error}")).hint(hint))
    };
    Ok(Checks {
        head: verify.head.as_deref().map(hash).transpose()?,
        key: verify.key,
        witnesses: verify.witness.iter().map(witness).collect::<Result<_, _>>()?,
        checkpoint: verify.checkpoint,
    })
}

fn hash(text: &str) -> Result<Hash, Failure> {
    let is_hash = text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    if !is_hash {
        let problem = format!("--head is `{text}`, expected 64 hexadecimal digits");
        return Err(Failure::usage(problem));
    }
    Ok(Hash::from_record(&text.to_ascii_lowercase()))
}
