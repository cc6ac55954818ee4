//! Signed notes and keys, with the vectors of C2SP, Go's `sumdb/note` and transparency.dev.

use proptest::prelude::*;
use tlog::key::{Algorithm, InvalidKey, KEY_TEXT_BYTES_MAX, KeyId, Statement};
use tlog::note::{
    InvalidNote, InvalidSignature, NOTE_BYTES_MAX, SIGNATURES_MAX, Untrusted, Verified,
};
use tlog::{Cosigner, KeyName, Note, Signature, SignerKey, Verifier, VerifierKey};

const TEXT: &str = "If you think cryptography is the answer to your problem,
then you don't know what your problem is.
";
const PETER: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const PETER_SECRET: &str =
    "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
const PETER_LINE: &str = "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
const ENOCH: &str = "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop";
const ENOCH_LINE: &str = "— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n";

const REKOR: &str = "rekor.sigstore.dev+c0d23d6a+AjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABNhtmPtrWm3U1eQXBogSMdGvXwBcK5AW5i0hrZLOC96l+smGNM7nwZ4QvFK/4sueRoVj//QP22Ni4Qt9DPfkWLc=";
const REKOR_NOTE: &str = "Rekor\n798034\nf+7CoKgXKE/tNys9TTXcr/ad6U/K3xvznmzew9y6SP0=\n\n— rekor.sigstore.dev wNI9ajBEAiARInWIWyCdyG27CO6LPnPekyw20qO0YJfoaPaowGp/XgIgc+qEHS3+GKVClgqq20uDLet7MCoTURUCRdxwWBHHufk=\n";
const PIXEL: &str = "pixel6_transparency_log+91c16e30+AjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABN+4x0Jk1yTwvLFI9A4NDdGZcX0aiWVdWM5XJVy0M4VWD3AvyW5Q6Hs9A0mcDkpUoYgn+KKPNzFC0H3nN3q6JQ8=";
const PIXEL_NOTE: &str = "DEFAULT\n10\nbsWRucJU5xJPHb5eBdOm6+DM+VelCZBuvtI3sHERJ9Y=\n\n— pixel6_transparency_log kcFuMDBFAiEAhqMAP8P6qf6QxtUJhzMhbN+MbZ9dwfUHzGQJmffJHtoCIGD0cNe47dHWBoPwYdgBCepB06/+g5O1FmYjXl06owL4\n";

pub(crate) fn key(text: &str) -> VerifierKey {
    text.parse().unwrap()
}

pub(crate) fn name(text: &str) -> KeyName {
    text.parse().unwrap()
}

/// Names of the known keys that signed.
fn verified(note: &str, keys: &[&str]) -> Result<Vec<String>, Untrusted> {
    let keys: Vec<VerifierKey> = keys.iter().map(|text| key(text)).collect();
    let verified = Note::parse(note.as_bytes()).unwrap().verify(&keys)?;
    Ok(verified.iter().map(|key| key.name.to_string()).collect())
}

fn peters(lines: &str) -> String {
    format!("{TEXT}\n{lines}")
}

#[test]
fn the_example_of_c2sp_verifies() {
    let note = "This is an example message.\n\n— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n";
    let vkey = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
    assert_eq!(verified(note, &[vkey]), Ok(vec!["example.com/foo".to_owned()]));
    assert_eq!(key(vkey).to_string(), vkey);
}

#[test]
fn a_note_that_we_sign_equals_gos() {
    let peter: SignerKey = PETER_SECRET.parse().unwrap();
    let note = Note::new(TEXT.to_owned(), peter.sign(TEXT)).unwrap();
    assert_eq!(note.to_string(), peters(PETER_LINE));
    assert_eq!(peter.verifier(), &key(PETER));
    assert_eq!(peter.to_secret_text(), PETER_SECRET);
}

#[test]
fn signatures_verify_as_in_go() {
    let names = |names: &[&str]| Ok(names.iter().map(|name| (*name).to_owned()).collect());
    let both = peters(&format!("{PETER_LINE}{ENOCH_LINE}"));
    assert_eq!(verified(&both, &[PETER]), names(&["PeterNeumann"]));
    assert_eq!(verified(&both, &[ENOCH, PETER]), names(&["PeterNeumann", "EnochRoot"]));
    assert_eq!(verified(&both, &[]), Err(Untrusted::NoKnownKey));
    let repeated = peters(&format!("{PETER_LINE}{PETER_LINE}{ENOCH_LINE}{ENOCH_LINE}"));
    assert_eq!(verified(&repeated, &[PETER]), names(&["PeterNeumann"]));
    assert_eq!(verified(&peters(PETER_LINE), &[ENOCH, PETER, ENOCH]), names(&["PeterNeumann"]));
    let (enoch, id) = (name("EnochRoot"), key(ENOCH).id());
    let ambiguous = Err(Untrusted::Ambiguous { name: enoch, id });
    assert_eq!(verified(&peters(ENOCH_LINE), &[ENOCH, PETER, ENOCH]), ambiguous);
}

#[test]
fn an_invalid_signature_of_a_known_key_fails_the_note() {
    let forged = PETER_LINE.replace("ZJku", "ZJkv");
    let error = Untrusted::Forged { name: name("PeterNeumann"), id: key(PETER).id() };
    let note = peters(&format!("{ENOCH_LINE}{forged}"));
    assert_eq!(verified(&note, &[ENOCH, PETER]), Err(error.clone()));
    assert_eq!(verified(&note, &[ENOCH]), Ok(vec!["EnochRoot".to_owned()]));
    let second = peters(&format!("{PETER_LINE}{forged}"));
    assert_eq!(verified(&second, &[PETER]), Err(error.clone()));
    let other_text = peters(PETER_LINE).replace("problem is", "problem was");
    assert_eq!(verified(&other_text, &[PETER]), Err(error));
}

#[test]
fn a_key_is_known_by_both_name_and_id() {
    let other_name = peters(&PETER_LINE.replace("PeterNeumann", "CarmenSandiego"));
    assert_eq!(verified(&other_name, &[PETER]), Err(Untrusted::NoKnownKey));
    let other_id = peters(&PETER_LINE.replace("x08g", "xxxx"));
    assert_eq!(verified(&other_id, &[PETER]), Err(Untrusted::NoKnownKey));
}

#[test]
fn ecdsa_signatures_of_real_logs_verify() {
    for (vkey, note) in [(REKOR, REKOR_NOTE), (PIXEL, PIXEL_NOTE)] {
        let key = key(vkey);
        assert_eq!(key.algorithm(), Algorithm::EcdsaP256);
        assert_eq!(key.to_string(), vkey);
        assert_eq!(verified(note, &[vkey]), Ok(vec![key.name().to_string()]));
        let changed = note.replace("\n10\n", "\n11\n").replace("\n798034\n", "\n798035\n");
        assert!(matches!(verified(&changed, &[vkey]), Err(Untrusted::Forged { .. })));
    }
    let renamed = REKOR.replace("rekor", "bananas");
    assert_eq!(verified(REKOR_NOTE, &[&renamed]), Err(Untrusted::NoKnownKey));
}

#[test]
fn malformed_notes_are_refused_as_in_go() {
    for (note, expected) in [
        (TEXT.as_bytes().to_vec(), "the note has no empty line with signatures after it"),
        (peters("").into_bytes(), "the note has no empty line with signatures after it"),
        (
            peters(PETER_LINE.trim_end()).into_bytes(),
            "the note has no empty line with signatures after it",
        ),
        (
            format!("\u{1}{}", peters(PETER_LINE)).into_bytes(),
            "line 1 of the note has a control character",
        ),
        (
            peters(PETER_LINE).replace("Peter", "Pe\rter").into_bytes(),
            "line 4 of the note has a control character",
        ),
        ([b"\xff", peters(PETER_LINE).as_bytes()].concat(), "the note is not UTF-8 from byte 0"),
        (
            peters(&PETER_LINE.replace("PeterNeumann", "Bad Name")).into_bytes(),
            "signature line 1 is invalid: the signature is not in padded standard base64",
        ),
        (
            peters(&format!("{PETER_LINE}Unexpected line.\n")).into_bytes(),
            "signature line 2 is invalid: it does not begin with an em dash and a space",
        ),
    ] {
        assert_eq!(Note::parse(&note).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_signature_line_has_one_encoding() {
    let line = PETER_LINE.trim_end();
    assert_eq!(line.parse::<Signature>().unwrap().to_string(), line);
    for (line, expected) in [
        ("— n QUJDREU", InvalidSignature::Base64),
        ("— n QUJDREU==", InvalidSignature::Base64),
        ("— n QUJDREV=", InvalidSignature::Base64),
        ("— n QUJDREVG=", InvalidSignature::Base64),
        ("— n QUJD=REU", InvalidSignature::Base64),
        ("— n QUJDREU= ", InvalidSignature::Base64),
        ("— n  QUJDREU=", InvalidSignature::Base64),
        ("— n QUJDRA==", InvalidSignature::Empty),
        ("— n ", InvalidSignature::Empty),
        ("— n", InvalidSignature::Base64),
        ("—  QUJDREU=", InvalidSignature::Name),
        ("— a+b QUJDREU=", InvalidSignature::Name),
        ("— a\u{a0}b QUJDREU=", InvalidSignature::Name),
        ("- n QUJDREU=", InvalidSignature::Prefix),
        ("", InvalidSignature::Prefix),
    ] {
        assert_eq!(line.parse::<Signature>(), Err(expected), "{line:?}");
    }
}

#[test]
fn the_last_empty_line_separates_the_signatures() {
    let signer: SignerKey = PETER_SECRET.parse().unwrap();
    for text in ["\n", "one\n\ntwo\n", "one\n\n\n", "— a line like a signature\n"] {
        let note = Note::new(text.to_owned(), signer.sign(text)).unwrap();
        let read = Note::parse(note.to_string().as_bytes()).unwrap();
        assert_eq!((read.text(), &read), (text, &note));
        assert!(read.verify(&[signer.verifier()]).is_ok());
    }
    let refused = Note::new("no newline".to_owned(), signer.sign("")).unwrap_err();
    assert_eq!(refused, InvalidNote::Unterminated);
    let refused = Note::new("a\tb\n".to_owned(), signer.sign("")).unwrap_err();
    assert_eq!(refused, InvalidNote::ControlCharacter { line: 1 });
}

#[test]
fn a_note_has_limits() {
    let full = peters(&ENOCH_LINE.repeat(SIGNATURES_MAX));
    assert!(Note::parse(full.as_bytes()).is_ok());
    let error = Note::parse(format!("{full}{ENOCH_LINE}").as_bytes()).unwrap_err();
    assert_eq!(error, InvalidNote::TooManySignatures);
    let long = format!("{}\n\n{PETER_LINE}", "x".repeat(NOTE_BYTES_MAX));
    let error = InvalidNote::TooLong { bytes: long.len() };
    assert_eq!(Note::parse(long.as_bytes()), Err(error));
    let signer: SignerKey = PETER_SECRET.parse().unwrap();
    let text = format!("{}\n", "x".repeat(NOTE_BYTES_MAX));
    let error = Note::new(text.clone(), signer.sign(&text)).unwrap_err();
    assert!(matches!(error, InvalidNote::TooLong { .. }));
}

#[test]
fn a_new_signature_replaces_one_by_the_same_key() {
    let peter: SignerKey = PETER_SECRET.parse().unwrap();
    let mut note = Note::parse(peters(&format!("{PETER_LINE}{ENOCH_LINE}")).as_bytes()).unwrap();
    note.add(peter.sign(TEXT)).unwrap();
    assert_eq!(note.to_string(), peters(&format!("{ENOCH_LINE}{PETER_LINE}")));
    for number in 0..SIGNATURES_MAX - 2 {
        let other = SignerKey::from_seed(name(&format!("key{number}")), &[1; 32]);
        note.add(other.sign(TEXT)).unwrap();
    }
    let other = SignerKey::from_seed(name("one-more"), &[1; 32]);
    let before = note.clone();
    assert_eq!(note.add(other.sign(TEXT)), Err(InvalidNote::TooManySignatures));
    assert_eq!(note, before);
    assert_eq!(Note::parse(note.to_string().as_bytes()), Ok(note));
}

/// What precedes the point in the SPKI form of a P-256 key.
const P256_SPKI_PREFIX: &str = "3059301306072a8648ce3d020106082a8648ce3d030107034200";

/// Stands in for a key management service, which signs but does not give out its key.
fn kms(message: &str) -> (VerifierKey, Vec<u8>) {
    use p256::ecdsa::signature::Signer as _;
    let secret = p256::ecdsa::SigningKey::from_slice(&[7; 32]).unwrap();
    let mut spki = hex::decode(P256_SPKI_PREFIX).unwrap();
    spki.extend_from_slice(secret.verifying_key().to_sec1_point(false).as_bytes());
    let signature: p256::ecdsa::DerSignature = secret.sign(message.as_bytes());
    let key = VerifierKey::ecdsa_p256(name("kms.example/log"), &spki).unwrap();
    (key, signature.as_bytes().to_vec())
}

#[test]
fn a_signature_made_elsewhere_is_verified_before_use() {
    let (key, bytes) = kms(TEXT);
    let note = Note::new(TEXT.to_owned(), Signature::new(&key, TEXT, bytes.clone()).unwrap());
    let signed = note.unwrap().verify(std::slice::from_ref(&key)).unwrap();
    let (name, id) = (key.name().clone(), key.id());
    let statement = Statement::Signed;
    assert_eq!(signed, [Verified { name: name.clone(), id, statement }]);
    let refused = Signature::new(&key, "another text\n", bytes).unwrap_err();
    assert_eq!(refused, Untrusted::Forged { name, id });
    assert_eq!(key.to_string().parse(), Ok(key));
}

#[test]
fn ecdsa_signatures_must_be_der_alone() {
    let (key, der) = kms(TEXT);
    assert!(key.verify(TEXT, &der).is_some());
    assert!(key.verify(TEXT, &[der.as_slice(), b"\0"].concat()).is_none());
    assert!(key.verify(TEXT, &der[..der.len() - 1]).is_none());
    assert!(key.verify(TEXT, &[0; 64]).is_none());
    assert!(key.verify(TEXT, &[]).is_none());
}

/// A verifier of an algorithm that this crate does not have.
struct Length(KeyName);

impl Verifier for Length {
    fn name(&self) -> &KeyName {
        &self.0
    }

    fn id(&self) -> KeyId {
        KeyId([0xff, 0, 0, 1])
    }

    fn verify(&self, text: &str, signature: &[u8]) -> Option<Statement> {
        (signature == text.len().to_be_bytes()).then_some(Statement::Signed)
    }
}

#[test]
fn another_algorithm_is_a_verifier() {
    let key = Length(name("length.example"));
    let signature = Signature::new(&key, "text\n", 5_usize.to_be_bytes().to_vec()).unwrap();
    let note = Note::new("text\n".to_owned(), signature).unwrap();
    let read = Note::parse(note.to_string().as_bytes()).unwrap();
    let peter = key_of_peter();
    let keys: [&dyn Verifier; 2] = [&peter, &key];
    assert_eq!(read.verify(&keys).unwrap().len(), 1);
    assert!(Signature::new(&key, "texts\n", 5_usize.to_be_bytes().to_vec()).is_err());
}

fn key_of_peter() -> VerifierKey {
    key(PETER)
}

#[test]
fn keys_of_other_projects_parse_back() {
    for vkey in [
        PETER,
        ENOCH,
        REKOR,
        PIXEL,
        "TEST+7997405c+AQcC+FTVKf0jlTdHDY3rbevmnKxxPjigCXlVtGe6RIr6",
        "remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2",
        "logandmap+38581672+Ab/PCr1eCclRPRMBqw/r5An1xO71MCnImLiospEq6b4l",
        "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8",
    ] {
        assert_eq!(key(vkey).to_string(), vkey);
    }
}

#[test]
fn invalid_keys_are_refused_with_the_reason() {
    let parse = |text: &str| text.parse::<VerifierKey>().unwrap_err();
    let form = |error: &InvalidKey| matches!(error, InvalidKey::Form { .. });
    assert!(form(&parse("bananas.sigstore.dev+12344556")));
    assert!(form(&parse("rekor.sigstore.dev+12345678+THIS_IS_NOT_BASE64!")));
    assert!(form(&parse("rekor.sigstore.dev+NOT_A_NUMBER+AQcC")));
    assert!(form(&parse(&PETER.replace("c74f20a3", "C74F20A3"))));
    assert!(form(&parse(&PETER.replace("c74f20a3", "c74f20a"))));
    assert!(form(&parse("name+c74f20a3+")));
    assert_eq!(parse(&PETER.replace("Peter", "Peter ")), InvalidKey::Name);
    assert_eq!(parse("name+12345678+AwEB"), InvalidKey::Algorithm { type_byte: 3 });
    let (stated, computed) = (KeyId([0; 4]), key(PETER).id());
    let zero = PETER.replace("c74f20a3", "00000000");
    assert_eq!(parse(&zero), InvalidKey::Id { stated, computed });
    // Adjusted IDs: a key of the wrong length, and an unknown algorithm.
    let long = "PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==";
    assert!(long.parse::<VerifierKey>().is_err());
    let unknown = "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    assert_eq!(parse(unknown), InvalidKey::Algorithm { type_byte: 0x65 });
    let bytes = KEY_TEXT_BYTES_MAX + 1;
    assert_eq!(parse(&"x".repeat(bytes)), InvalidKey::TooLong { bytes });
}

#[test]
fn keys_that_verify_forgeries_are_refused() {
    // The neutral element, and the point of order 2.
    let mut order_two = [0xff; 32];
    (order_two[0], order_two[31]) = (0xec, 0x7f);
    let mut neutral = [0; 32];
    neutral[0] = 1;
    for weak in [neutral, order_two, [0; 32]] {
        assert_eq!(VerifierKey::ed25519(name("weak"), &weak), Err(InvalidKey::Material));
        assert_eq!(VerifierKey::cosigner(name("weak"), &weak), Err(InvalidKey::Material));
    }
    assert_eq!(VerifierKey::ecdsa_p256(name("weak"), &[0x30, 0]), Err(InvalidKey::Material));
    // P-384, which C2SP permits and this crate does not have.
    let p384 = hex::decode(concat!(
        "3076301006072a8648ce3d020106052b8104002203620004aa87ca22be8b05378eb1c71ef320ad746e1d3b628ba79b9859f741e082542a385502f25dbf55296c3a545e3872760ab7",
        "3617de4a96262c6f5d9e98bf9292dc29f8f41dbd289a147ce9da3113b5f0b8c00a60b1ce1d7e819d7a431d7c90ea0e5f"
    ));
    let p384 = VerifierKey::ecdsa_p256(name("p384"), &p384.unwrap());
    assert_eq!(p384, Err(InvalidKey::Material));
}

#[test]
fn a_mangled_key_is_refused() {
    let check = |text: &str| {
        assert!(text.parse::<VerifierKey>().is_err(), "{text}");
        assert!(text.parse::<SignerKey>().is_err(), "{text}");
        assert!(text.parse::<Cosigner>().is_err(), "{text}");
    };
    for (key, may_be) in [(PETER, PETER), (PETER_SECRET, PETER_SECRET)] {
        for start in 0..key.len() {
            for end in start..=key.len() {
                if key[start..end] != *may_be {
                    check(&key[start..end]);
                }
            }
        }
        for at in 0..key.len() {
            let mut bytes = key.as_bytes().to_vec();
            bytes[at] += 1;
            check(std::str::from_utf8(&bytes).unwrap());
        }
    }
}

#[test]
fn a_secret_key_is_not_printed() {
    let key = SignerKey::from_seed(name("n"), &[0x41; 32]);
    assert_eq!(format!("{key:?}"), format!("SignerKey(n+{})", key.verifier().id()));
    let cosigner = Cosigner::from_seed(name("n"), &[0x41; 32]);
    assert!(!format!("{cosigner:?}").contains("QUFB"));
    let text = cosigner.to_secret_text();
    assert_eq!(text.parse::<Cosigner>().unwrap().verifier(), cosigner.verifier());
    assert_eq!(text.parse::<SignerKey>().unwrap_err(), InvalidKey::Algorithm { type_byte: 4 });
}

prop_compose! {
    fn lines()(lines in prop::collection::vec("[^\u{0}-\u{1f}]{0,12}", 1..6)) -> String {
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

proptest! {
    #[test]
    fn a_formatted_note_parses_back(
        text in lines(), seeds in prop::collection::vec((any::<[u8; 32]>(), "[a-zä./]{1,9}"), 1..5),
    ) {
        let signers: Vec<SignerKey> = seeds
            .iter()
            .map(|(seed, key_name)| SignerKey::from_seed(name(key_name), seed))
            .collect();
        let mut note = Note::new(text.clone(), signers[0].sign(&text)).unwrap();
        for signer in &signers {
            note.add(signer.sign(&text)).unwrap();
        }
        let read = Note::parse(note.to_string().as_bytes()).unwrap();
        prop_assert_eq!(&read, &note);
        for signer in &signers {
            prop_assert!(read.verify(&[signer.verifier()]).is_ok());
        }
    }

    #[test]
    fn a_formatted_key_parses_back(seed: [u8; 32], key_name in "[^\\s+\u{0}-\u{1f}]{1,20}") {
        let signer = SignerKey::from_seed(name(&key_name), &seed);
        let read: SignerKey = signer.to_secret_text().parse().unwrap();
        prop_assert_eq!(read.verifier(), signer.verifier());
        prop_assert_eq!(&signer.verifier().to_string().parse(), &Ok(signer.verifier().clone()));
        let cosigner = Cosigner::from_seed(name(&key_name), &seed);
        prop_assert_ne!(cosigner.verifier().id(), signer.verifier().id());
    }

    #[test]
    fn parsing_any_note_never_panics(bytes: Vec<u8>, lines in "(— |[a+= \n—]){0,60}") {
        let _ = Note::parse(&bytes);
        if let Ok(note) = Note::parse(lines.as_bytes()) {
            prop_assert_eq!(note.to_string(), lines);
        }
    }

    #[test]
    fn parsing_any_key_never_panics(text in "(PRIVATE|KEY|[a-f0-9+=]|\\PC){0,40}", spki: Vec<u8>) {
        let _ = text.parse::<VerifierKey>();
        let _ = text.parse::<SignerKey>();
        let _ = text.parse::<Cosigner>();
        let _ = VerifierKey::ecdsa_p256(name("n"), &spki);
    }

    #[test]
    fn no_flipped_bit_of_a_note_verifies(at: prop::sample::Index, bit in 0..8_u8) {
        let mut bytes = peters(PETER_LINE).into_bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let trusted = Note::parse(&bytes).is_ok_and(|note| note.verify(&[key(PETER)]).is_ok());
        prop_assert!(!trusted);
    }

    #[test]
    fn no_flipped_bit_of_a_signature_verifies(bit: prop::sample::Index, seed: [u8; 32]) {
        let ed25519 = SignerKey::from_seed(name("n"), &seed);
        let ed25519 = (ed25519.verifier().clone(), ed25519.sign(TEXT).bytes().to_vec());
        for (key, mut signature) in [ed25519, kms(TEXT)] {
            let bit = bit.index(signature.len() * 8);
            signature[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(key.verify(TEXT, &signature).is_none());
        }
    }
}
