//! Keys that sign and verify notes, in the text forms of C2SP signed-note.

use crate::note::{Signature, valid_name};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use p256::ecdsa::signature::Verifier as _;
use p256::pkcs8::DecodePublicKey as _;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// Longest text of a key, in bytes. The largest key material that C2SP signed-note assigns, that of
/// ML-DSA-44, needs 1,752.
pub const KEY_TEXT_BYTES_MAX: usize = 4096;

/// Bytes of an Ed25519 public key, and of the seed of a secret one.
pub const ED25519_BYTES: usize = 32;

/// First text of a signer key. Source: golang.org/x/mod/sumdb/note.
const SECRET_PREFIX: &str = "PRIVATE+KEY+";

/// What a key signs with. Source: C2SP signed-note, "Signature types".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Ed25519 over the text of the note: type 0x01.
    Ed25519,
    /// ECDSA over P-256 with SHA-256, the signature in DER: type 0x02.
    EcdsaP256,
    /// Ed25519 over a time and the text of a checkpoint: type 0x04, C2SP tlog-cosignature.
    Cosignature,
}

impl Algorithm {
    const fn type_byte(self) -> u8 {
        match self {
            Algorithm::Ed25519 => 0x01,
            Algorithm::EcdsaP256 => 0x02,
            Algorithm::Cosignature => 0x04,
        }
    }

    fn of_type(byte: u8) -> Option<Algorithm> {
        [Algorithm::Ed25519, Algorithm::EcdsaP256, Algorithm::Cosignature]
            .into_iter()
            .find(|algorithm| algorithm.type_byte() == byte)
    }
}

/// Why a text or some bytes are no key. Never quotes a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    #[error("the key has {bytes} bytes, {KEY_TEXT_BYTES_MAX} at most")]
    TooLong { bytes: usize },
    #[error("the key is not of the form {form}")]
    Form { form: &'static str },
    #[error("the key name is empty, or has a space, a plus sign or a control character")]
    Name,
    #[error("the key has the signature type {type_byte:#04x}, which is not supported here")]
    Algorithm { type_byte: u8 },
    #[error("the key material is not a valid public key for its signature type")]
    Material,
    #[error("the key says that its ID is {stated}, but it is {computed}")]
    Id { stated: KeyId, computed: KeyId },
}

/// The name of a key, by recommendation a URL without a schema such as `example.com/log`: not empty,
/// and without spaces, plus signs and control characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyName(String);

impl KeyName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for KeyName {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<KeyName, InvalidKey> {
        if valid_name(text) { Ok(KeyName(text.to_owned())) } else { Err(InvalidKey::Name) }
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The ID of a key: together with the name it says which key signed. It is short, so it identifies
/// among known keys and proves nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub [u8; 4]);

impl KeyId {
    /// As C2SP signed-note recommends, and demands for Ed25519 and cosignatures.
    fn of(name: &KeyName, material: &[u8]) -> KeyId {
        let input = Sha256::new().chain_update(name.as_str()).chain_update("\n");
        KeyId::truncated(input.chain_update(material))
    }

    fn truncated(hash: Sha256) -> KeyId {
        let hash: [u8; 32] = hash.finalize().into();
        KeyId([hash[0], hash[1], hash[2], hash[3]])
    }
}

impl FromStr for KeyId {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<KeyId, InvalidKey> {
        let form = InvalidKey::Form { form: "eight lowercase hexadecimal digits" };
        let digits = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        if text.len() != 8 || !text.bytes().all(digits) {
            return Err(form);
        }
        u32::from_str_radix(text, 16).map(|id| KeyId(id.to_be_bytes())).map_err(|_| form)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:08x}", u32::from_be_bytes(self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "KeyId({self})")
    }
}

/// What a valid signature states of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// The holder of the key signed it.
    Signed,
    /// A cosigner saw it as the latest checkpoint of the log at this time, in seconds since 1970.
    Cosigned { time: u64 },
}

/// A known key. [`VerifierKey`] has the algorithms of this crate; implement the trait for others.
pub trait Verifier {
    fn name(&self) -> &KeyName;

    fn id(&self) -> KeyId;

    /// What the signature states of the text; `None` if it is not valid. `signature` comes without
    /// the key ID.
    fn verify(&self, text: &str, signature: &[u8]) -> Option<Statement>;
}

impl<V: Verifier + ?Sized> Verifier for &V {
    fn name(&self) -> &KeyName {
        (**self).name()
    }

    fn id(&self) -> KeyId {
        (**self).id()
    }

    fn verify(&self, text: &str, signature: &[u8]) -> Option<Statement> {
        (**self).verify(text, signature)
    }
}

/// A public key with its name. Its text form, which `Display` writes and `parse` reads, is
/// `<name>+<key ID>+<base64 of signature type and public key>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifierKey {
    name: KeyName,
    id: KeyId,
    public: Public,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Public {
    Ed25519(ed25519_dalek::VerifyingKey),
    EcdsaP256 { key: Box<p256::ecdsa::VerifyingKey>, spki: Vec<u8> },
    Cosignature(ed25519_dalek::VerifyingKey),
}

impl VerifierKey {
    /// # Errors
    ///
    /// If the bytes are no Ed25519 public key, or one of the few that verify forgeries.
    pub fn ed25519(name: KeyName, key: &[u8; ED25519_BYTES]) -> Result<VerifierKey, InvalidKey> {
        VerifierKey::new(name, Algorithm::Ed25519, key)
    }

    /// # Errors
    ///
    /// If the bytes are not the DER encoding of an Ed25519 public key in SPKI form, which is how AWS KMS returns them, or as
    /// [`VerifierKey::ed25519`].
    pub fn ed25519_spki(name: KeyName, spki: &[u8]) -> Result<VerifierKey, InvalidKey> {
        let key = ed25519_dalek::VerifyingKey::from_public_key_der(spki)
            .map_err(|_| InvalidKey::Material)?;
        VerifierKey::ed25519(name, key.as_bytes())
    }

    /// # Errors
    ///
    /// If the bytes are not the DER encoding of a P-256 public key in SPKI form, which is how AWS
    /// KMS returns them.
    pub fn ecdsa_p256(name: KeyName, spki: &[u8]) -> Result<VerifierKey, InvalidKey> {
        VerifierKey::new(name, Algorithm::EcdsaP256, spki)
    }

    /// The key of a cosigner, such as a witness.
    ///
    /// # Errors
    ///
    /// As [`VerifierKey::ed25519`].
    pub fn cosigner(name: KeyName, key: &[u8; ED25519_BYTES]) -> Result<VerifierKey, InvalidKey> {
        VerifierKey::new(name, Algorithm::Cosignature, key)
    }

    fn new(name: KeyName, algorithm: Algorithm, key: &[u8]) -> Result<VerifierKey, InvalidKey> {
        let public = match algorithm {
            Algorithm::Ed25519 => Public::Ed25519(ed25519(key)?),
            Algorithm::Cosignature => Public::Cosignature(ed25519(key)?),
            Algorithm::EcdsaP256 => Public::EcdsaP256 {
                key: Box::new(
                    p256::ecdsa::VerifyingKey::from_public_key_der(key)
                        .map_err(|_| InvalidKey::Material)?,
                ),
                spki: key.to_vec(),
            },
        };
        let id = match algorithm {
            // Source: C2SP signed-note, "Signature types", 0x02.
            Algorithm::EcdsaP256 => KeyId::truncated(Sha256::new().chain_update(key)),
            Algorithm::Ed25519 | Algorithm::Cosignature => {
                KeyId::of(&name, &material(algorithm, key))
            }
        };
        Ok(VerifierKey { name, id, public })
    }

    pub fn algorithm(&self) -> Algorithm {
        match self.public {
            Public::Ed25519(_) => Algorithm::Ed25519,
            Public::EcdsaP256 { .. } => Algorithm::EcdsaP256,
            Public::Cosignature(_) => Algorithm::Cosignature,
        }
    }

    /// The public key without the signature type: 32 bytes, or SPKI in DER for ECDSA.
    pub fn public(&self) -> &[u8] {
        match &self.public {
            Public::Ed25519(key) | Public::Cosignature(key) => key.as_bytes(),
            Public::EcdsaP256 { spki, .. } => spki,
        }
    }
}

fn ed25519(key: &[u8]) -> Result<ed25519_dalek::VerifyingKey, InvalidKey> {
    let bytes = key.try_into().map_err(|_| InvalidKey::Material)?;
    let key = ed25519_dalek::VerifyingKey::from_bytes(bytes).map_err(|_| InvalidKey::Material)?;
    if key.is_weak() { Err(InvalidKey::Material) } else { Ok(key) }
}

fn material(algorithm: Algorithm, key: &[u8]) -> Vec<u8> {
    [&[algorithm.type_byte()], key].concat()
}

impl Verifier for VerifierKey {
    fn name(&self) -> &KeyName {
        &self.name
    }

    fn id(&self) -> KeyId {
        self.id
    }

    fn verify(&self, text: &str, signature: &[u8]) -> Option<Statement> {
        match &self.public {
            Public::Ed25519(key) => {
                let signature = ed25519_dalek::Signature::from_slice(signature).ok()?;
                key.verify_strict(text.as_bytes(), &signature).ok()?;
                Some(Statement::Signed)
            }
            Public::EcdsaP256 { key, .. } => {
                let signature = p256::ecdsa::DerSignature::from_bytes(signature).ok()?;
                key.verify(text.as_bytes(), &signature).ok()?;
                Some(Statement::Signed)
            }
            Public::Cosignature(key) => crate::cosignature::verify(key, text, signature),
        }
    }
}

const VERIFIER_FORM: &str = "<name>+<key ID in hexadecimal>+<base64 of type and public key>";

impl FromStr for VerifierKey {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<VerifierKey, InvalidKey> {
        let parts = Parts::parse(text, VERIFIER_FORM)?;
        let key = VerifierKey::new(parts.name, parts.algorithm, &parts.material)?;
        stated_is_computed(parts.id, key.id)?;
        Ok(key)
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let material = STANDARD.encode(material(self.algorithm(), self.public()));
        write!(out, "{}+{}+{material}", self.name, self.id)
    }
}

fn stated_is_computed(stated: KeyId, computed: KeyId) -> Result<(), InvalidKey> {
    if stated == computed { Ok(()) } else { Err(InvalidKey::Id { stated, computed }) }
}

/// The parts that the text forms of both kinds of keys have.
struct Parts {
    name: KeyName,
    id: KeyId,
    algorithm: Algorithm,
    material: Vec<u8>,
}

impl Parts {
    fn parse(text: &str, form: &'static str) -> Result<Parts, InvalidKey> {
        if text.len() > KEY_TEXT_BYTES_MAX {
            return Err(InvalidKey::TooLong { bytes: text.len() });
        }
        let form = InvalidKey::Form { form };
        let (name, rest) = text.split_once('+').ok_or(form.clone())?;
        let (id, material) = rest.split_once('+').ok_or(form.clone())?;
        let (name, id) = (name.parse()?, id.parse()?);
        let mut material = STANDARD.decode(material).map_err(|_| form.clone())?;
        if material.is_empty() {
            return Err(form);
        }
        let type_byte = material.remove(0);
        let algorithm = Algorithm::of_type(type_byte).ok_or(InvalidKey::Algorithm { type_byte })?;
        Ok(Parts { name, id, algorithm, material })
    }
}

/// A secret Ed25519 key with its name, for notes. Its text form is that of Go's
/// `golang.org/x/mod/sumdb/note`; there is no `Display`, so that no log has it.
#[derive(Clone)]
pub struct SignerKey {
    secret: SigningKey,
    verifier: VerifierKey,
}

impl fmt::Debug for SignerKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "SignerKey({}+{})", self.verifier.name, self.verifier.id)
    }
}

impl SignerKey {
    /// The key that follows from a seed, which must be 32 secret random bytes.
    pub fn from_seed(name: KeyName, seed: &[u8; ED25519_BYTES]) -> SignerKey {
        SignerKey::new(name, Algorithm::Ed25519, seed)
    }

    pub(crate) fn new(
        name: KeyName,
        algorithm: Algorithm,
        seed: &[u8; ED25519_BYTES],
    ) -> SignerKey {
        let secret = SigningKey::from_bytes(seed);
        let key = secret.verifying_key();
        let id = KeyId::of(&name, &material(algorithm, key.as_bytes()));
        let public = match algorithm {
            Algorithm::Cosignature => Public::Cosignature(key),
            Algorithm::Ed25519 | Algorithm::EcdsaP256 => Public::Ed25519(key),
        };
        SignerKey { secret, verifier: VerifierKey { name, id, public } }
    }

    pub(crate) fn parse(text: &str, algorithm: Algorithm) -> Result<SignerKey, InvalidKey> {
        let form = "PRIVATE+KEY+<name>+<key ID in hexadecimal>+<base64 of type and seed>";
        let rest = text.strip_prefix(SECRET_PREFIX).ok_or(InvalidKey::Form { form })?;
        let parts = Parts::parse(rest, form)?;
        if parts.algorithm != algorithm {
            return Err(InvalidKey::Algorithm { type_byte: parts.algorithm.type_byte() });
        }
        let seed = parts.material.as_slice().try_into().map_err(|_| InvalidKey::Material)?;
        let key = SignerKey::new(parts.name, algorithm, seed);
        stated_is_computed(parts.id, key.verifier.id)?;
        Ok(key)
    }

    pub fn verifier(&self) -> &VerifierKey {
        &self.verifier
    }

    /// The secret text form, for a file that only its owner can read.
    pub fn to_secret_text(&self) -> String {
        let VerifierKey { name, id, .. } = &self.verifier;
        let material = material(self.verifier.algorithm(), self.secret.as_bytes());
        format!("{SECRET_PREFIX}{name}+{id}+{}", STANDARD.encode(material))
    }

    /// Signs the text of a note.
    pub fn sign(&self, text: &str) -> Signature {
        self.signature(self.sign_bytes(text.as_bytes()).to_vec())
    }

    pub(crate) fn sign_bytes(&self, message: &[u8]) -> [u8; ed25519_dalek::SIGNATURE_LENGTH] {
        self.secret.sign(message).to_bytes()
    }

    pub(crate) fn signature(&self, bytes: Vec<u8>) -> Signature {
        Signature::unchecked(self.verifier.name.clone(), self.verifier.id, bytes)
    }
}

impl FromStr for SignerKey {
    type Err = InvalidKey;

    /// Reads the secret text form.
    fn from_str(text: &str) -> Result<SignerKey, InvalidKey> {
        SignerKey::parse(text, Algorithm::Ed25519)
    }
}
