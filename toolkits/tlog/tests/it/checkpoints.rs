//! Checkpoints and cosignatures, with vectors of real logs, C2SP, Go and transparency.dev.

use proptest::prelude::*;
use tlog::checkpoint::{InvalidCheckpoint, NotOfLog, ORIGIN_BYTES_MAX};
use tlog::cosignature::{TIME_MAX, Time};
use tlog::key::Statement;
use tlog::note::Untrusted;
use tlog::{
    Checkpoint, Cosigner, Hash, Note, Origin, Signature, SignedCheckpoint, SignerKey, TreeHead,
    Verifier as _,
};

use crate::notes::{key, name};

/// A staging log of Certificate Transparency, cosigned by public witnesses. One of its own
/// signatures has the type of RFC 6962, which this crate ignores.
const CT: &str = "arche2025h1.staging.ct.transparency.dev
1432088532
U7WM79jrzyhGZ5/GUBTpM7NzwdyfFx61t3RovgcC4Ro=

— arche2025h1.staging.ct.transparency.dev zTM8sQAAAZ5W0WdjBAMARjBEAiBjW5IQf9pvsYLfQFX6hoGREPMHbdQ3urbllzalApkptQIgIpwtEroeW2BXaHAI4kJXFbon5Ch9MNL5zRNZ55lvGt0=
— arche2025h1.staging.ct.transparency.dev ui8GwCF1+kWqZrxGdhj4aX3gcw7XUlXQQabg/27lefwhUkzbC3NygNI75MdhL1bfTW9g8Ei59RA23oHP7Ry1k3ZFWwQ=
— transparency.dev/DEV:witness-little-garden 2AQqhwAAAABqEiEgzgFIqqhbUoDwjMWE6UP8nd8/KYTzwZ2rhIgcqoXHAwVkjZr4AscylP3v7sEodkRAErumC2q44vdgJY096st5BQ==
— witness1.smartit.nu/witness1 pIyCDwAAAABqEiEghIp82KWebrw7/oHQwlTAm3g2RKS4+eebl8eO0WH+/iEcxZ75W3u5hNI7TOQtmJbqmNWVuE0tgh0XwzdZsDsUAQ==
— remora.n621.de 2net5wAAAABqEiEgPlfF3V06o0Y+fHM+J5J9s27wgxxcOVSpZ/2g/KSiXCg9DEZI+aVCIobWX9sXTynk5XeU/zZ0WBxtqB0DrAWfBw==
— witness.stagemole.eu Z/euoAAAAABqEiEgw0i+7g2ENfDAWHmtRzCfKTHSDwYDJA2NmKeGi9Y8FtEyOUvVr+AJmIY/2TUFucgKi7lI7cUiOvKFYe/TmN9DAg==
";
const CT_KEY: &str =
    "arche2025h1.staging.ct.transparency.dev+ba2f06c0+AU0vHmlGCS/PdN8b2OaGmKprLI8HKM+dJ472xgFYh15f";
const CT_WITNESS: &str = "remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2";

const GO: &str = "go.sum database tree
35225469
vt5T6GaLCXvyHFl9VUvvItR43XZxfLgftEcTyO3eJCQ=

— sum.golang.org Az3grpukl5AXaVfYkLiDGORx/DN2nlcS5kZHR5uYOBV2KA2HgXpD+gu9HHONebHLAyaKbbTM75QTtPydhKCExixSfwQ=
";
const GO_KEY: &str = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8";

fn origin(text: &str) -> Origin {
    text.parse().unwrap()
}

pub(crate) fn signed(text: &str) -> SignedCheckpoint {
    SignedCheckpoint::parse(text.as_bytes()).unwrap()
}

fn hello() -> TreeHead {
    TreeHead { size: 123_456_789_012, root: Hash::leaf(b"hello world") }
}

#[test]
fn a_checkpoint_of_gos_database_verifies() {
    let checkpoint = signed(GO);
    let log = origin("go.sum database tree");
    assert_eq!(checkpoint.verify(&log, &[key(GO_KEY)]).unwrap().len(), 1);
    assert_eq!(checkpoint.checkpoint().head().size, 35_225_469);
    assert_eq!(checkpoint.to_string(), GO);
    let other = origin("another log");
    let error = NotOfLog::OtherOrigin { expected: other.clone(), found: log };
    assert_eq!(checkpoint.verify(&other, &[key(GO_KEY)]), Err(error));
}

#[test]
fn a_cosigned_checkpoint_of_a_real_log_verifies() {
    let checkpoint = signed(CT);
    let log = origin("arche2025h1.staging.ct.transparency.dev");
    let by_log = checkpoint.verify(&log, &[key(CT_KEY)]).unwrap();
    assert_eq!(by_log[0].statement, Statement::Signed);
    let by_witness = checkpoint.note().verify(&[key(CT_WITNESS)]).unwrap();
    assert_eq!(by_witness[0].statement, Statement::Cosigned { time: 1_779_573_024 });
    assert_eq!(checkpoint.to_string(), CT);
    for changed in [CT.replace("1432088532", "42"), CT.replace("qEiEgPlf", "qEiEhPlf")] {
        let error = signed(&changed).note().verify(&[key(CT_WITNESS)]).unwrap_err();
        assert!(matches!(error, Untrusted::Forged { .. }), "{error}");
    }
}

#[test]
fn the_example_of_c2sp_parses() {
    let text =
        "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";
    let cosigned = format!(
        "{text}\n— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n— witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==\n"
    );
    let checkpoint = signed(&cosigned);
    assert_eq!(checkpoint.to_string(), cosigned);
    assert_eq!(checkpoint.checkpoint().head().size, 20_852_163);
    // The timestamp of the example: `time 1679315147`.
    let bytes = checkpoint.note().signatures()[1].bytes();
    assert_eq!(bytes[..8], 1_679_315_147_u64.to_be_bytes());
}

#[test]
fn a_formatted_checkpoint_equals_gos() {
    let golden =
        "go.sum database tree\n123456789012\nTszzRgjTG6xce+z2AG31kAXYKBgQVtCSCE40HmuwBb0=\n";
    let checkpoint = Checkpoint::new(origin("go.sum database tree"), hello());
    assert_eq!(checkpoint.to_string(), golden);
    assert_eq!(golden.parse(), Ok(checkpoint));
}

#[test]
fn malformed_checkpoints_are_refused() {
    use InvalidCheckpoint as E;
    let root = "TszzRgjTG6xce+z2AG31kAXYKBgQVtCSCE40HmuwBb0=";
    let long = "x".repeat(ORIGIN_BYTES_MAX + 1);
    let bytes = long.len();
    for (text, expected) in [
        (String::new(), E::Unterminated),
        ("Head\n9944\n".to_owned(), E::TooShort { lines: 2 }),
        (format!("\n9944\n{root}\n"), E::Origin),
        (format!("a\u{7}b\n9944\n{root}\n"), E::Origin),
        (format!("{long}\n9944\n{root}\n"), E::LongOrigin { bytes }),
        (format!("Log\n123\n{root}"), E::Unterminated),
        (format!("Log\nbananas\n{root}\n"), E::Size),
        (format!("Log\n0xabcdef\n{root}\n"), E::Size),
        (format!("Log\n-34\n{root}\n"), E::Size),
        (format!("Log\n+34\n{root}\n"), E::Size),
        (format!("Log\n034\n{root}\n"), E::Size),
        (format!("Log\n00\n{root}\n"), E::Size),
        (format!("Log\n 34\n{root}\n"), E::Size),
        (format!("Log\n\n{root}\n"), E::Size),
        (format!("Log\n18446744073709551616\n{root}\n"), E::Size),
        ("Log\n123\nThisIsn'tBase64\n".to_owned(), E::Root(tlog::hash::InvalidHash)),
        ("Log\n123\nYmFuYW5hcw==\n".to_owned(), E::Root(tlog::hash::InvalidHash)),
        (format!("Log\n123\n{}\n", &root[..43]), E::Root(tlog::hash::InvalidHash)),
        (format!("Log\n123\n{}\n", root.replace("b0=", "b1=")), E::Root(tlog::hash::InvalidHash)),
        (format!("Log\n123\n{root}\n\n"), E::Extension { line: 1 }),
        (format!("Log\n123\n{root}\nline\n\n"), E::Extension { line: 2 }),
        (format!("Log\n123\n{root}\nJOE"), E::Unterminated),
    ] {
        assert_eq!(text.parse::<Checkpoint>(), Err(expected), "{text:?}");
    }
    let largest = format!("Log\n18446744073709551615\n{root}\n");
    assert_eq!(largest.parse::<Checkpoint>().unwrap().head().size, u64::MAX);
}

#[test]
fn extension_lines_are_signed_with_the_rest() {
    let signer = SignerKey::from_seed(name("moon.example"), &[3; 32]);
    let checkpoint = Checkpoint::new(origin("Moon Log"), hello());
    let checkpoint = checkpoint.with_extension("6086d1a9").unwrap();
    let checkpoint = checkpoint.with_extension("Waxing gibbous").unwrap();
    assert!(checkpoint.clone().with_extension("two\nlines").is_err());
    let signature = signer.sign(&checkpoint.to_string());
    let signed = SignedCheckpoint::new(checkpoint.clone(), signature).unwrap();
    let text = signed.to_string();
    let read = SignedCheckpoint::parse(text.as_bytes()).unwrap();
    assert_eq!(read.checkpoint().extensions(), ["6086d1a9", "Waxing gibbous"]);
    assert!(read.verify(checkpoint.origin(), &[signer.verifier()]).is_ok());
    let changed = text.replace("gibbous", "crescent");
    let changed = SignedCheckpoint::parse(changed.as_bytes()).unwrap();
    assert!(changed.verify(checkpoint.origin(), &[signer.verifier()]).is_err());
}

#[test]
fn a_cosignature_states_its_time() {
    let cosigner = Cosigner::from_seed(name("witness.example/w1"), &[5; 32]);
    let checkpoint = Checkpoint::new(origin("log.example"), hello());
    let signature = cosigner.cosign(&checkpoint, Time::new(1_679_315_147).unwrap());
    let note = Note::new(checkpoint.to_string(), signature.clone()).unwrap();
    let verified = note.verify(&[cosigner.verifier()]).unwrap();
    assert_eq!(verified[0].statement, Statement::Cosigned { time: 1_679_315_147 });
    // The same key, as one that signs notes, knows nothing of it.
    let plain = SignerKey::from_seed(name("witness.example/w1"), &[5; 32]);
    assert_eq!(note.verify(&[plain.verifier()]), Err(Untrusted::NoKnownKey));
    // What is signed is exactly the two lines of C2SP and the checkpoint.
    let message = format!("cosignature/v1\ntime 1679315147\n{checkpoint}");
    assert_eq!(plain.sign(&message).bytes(), &signature.bytes()[8..]);
}

#[test]
fn a_cosignature_has_a_time_of_63_bits() {
    assert_eq!(Time::new(0), None);
    assert_eq!(Time::new(TIME_MAX + 1), None);
    assert!(Time::new(TIME_MAX).is_some());
    let plain = SignerKey::from_seed(name("w"), &[5; 32]);
    let cosigner = Cosigner::from_seed(name("w"), &[5; 32]);
    for (time, valid) in [(TIME_MAX, true), (TIME_MAX + 1, false), (u64::MAX, false)] {
        let message = format!("cosignature/v1\ntime {time}\ntext\n");
        let bytes = [&time.to_be_bytes(), plain.sign(&message).bytes()].concat();
        let signature = Signature::new(cosigner.verifier(), "text\n", bytes);
        assert_eq!(signature.is_ok(), valid, "{time}");
    }
}

prop_compose! {
    fn checkpoint()(
        origin in "[^\u{0}-\u{1f}]{1,60}", size: u64, root: [u8; 32],
        extensions in prop::collection::vec("[^\u{0}-\u{1f}]{1,9}", 0..3),
    ) -> Checkpoint {
        let head = TreeHead { size, root: Hash::new(root) };
        let empty = Checkpoint::new(origin.parse().unwrap(), head);
        extensions.iter().fold(empty, |made, line| made.with_extension(line).unwrap())
    }
}

proptest! {
    #[test]
    fn a_formatted_checkpoint_parses_back(checkpoint in checkpoint(), seed: [u8; 32]) {
        prop_assert_eq!(checkpoint.to_string().parse(), Ok(checkpoint.clone()));
        let signer = SignerKey::from_seed(name("n"), &seed);
        let signature = signer.sign(&checkpoint.to_string());
        let signed = SignedCheckpoint::new(checkpoint, signature).unwrap();
        prop_assert_eq!(SignedCheckpoint::parse(signed.to_string().as_bytes()), Ok(signed));
    }

    #[test]
    fn a_parsed_checkpoint_formats_back(text in "[a-z]{0,2}\n[+0-9]{0,3}\n[\\PC]{0,4}(AAAA){10}AAA=\n") {
        if let Ok(checkpoint) = text.parse::<Checkpoint>() {
            prop_assert_eq!(checkpoint.to_string(), text);
        }
    }

    #[test]
    fn no_flipped_bit_of_a_cosignature_verifies(
        checkpoint in checkpoint(), seed: [u8; 32], time in 1..=TIME_MAX, bit in 0..72_usize * 8,
    ) {
        let cosigner = Cosigner::from_seed(name("w"), &seed);
        let text = checkpoint.to_string();
        let mut bytes = cosigner.cosign(&checkpoint, Time::new(time).unwrap()).bytes().to_vec();
        let valid = cosigner.verifier().verify(&text, &bytes);
        prop_assert_eq!(valid, Some(Statement::Cosigned { time }));
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(cosigner.verifier().verify(&text, &bytes), None);
    }
}
