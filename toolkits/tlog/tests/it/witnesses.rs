//! Witnesses, with the requests of litewitness and of transparency.dev's witness.

use proptest::prelude::*;
use tlog::checkpoint::InvalidCheckpoint;
use tlog::cosignature::Time;
use tlog::key::Statement;
use tlog::note::{InvalidNote, NOTE_BYTES_MAX, Untrusted};
use tlog::proof::InvalidProof;
use tlog::witness::{
    Accepted, AddCheckpoint, InvalidAnswer, InvalidLog, InvalidRequest, PROOF_HASHES_MAX,
    REQUEST_BYTES_MAX, Refusal, SIZE_CONTENT_TYPE, origin_hash, parse_size,
};
use tlog::{
    Checkpoint, Cosigner, Hash, Origin, SignedCheckpoint, SignerKey, TreeHead, VerifierKey, Witness,
};

use crate::checkpoints::signed;
use crate::log::Log;
use crate::notes::{key, name};

const NOW: u64 = 1_800_000_000;

/// A witness with its database of one log.
struct Served {
    witness: Witness,
    latest: TreeHead,
}

impl Served {
    fn new(origin: &Origin, keys: Vec<VerifierKey>) -> Served {
        let mut witness = Witness::new(Cosigner::from_seed(name("witness.example/w1"), &[9; 32]));
        witness.add_log(origin.clone(), keys).unwrap();
        Served { witness, latest: TreeHead::empty() }
    }

    fn decide(&self, body: &[u8]) -> Result<Accepted, Refusal> {
        let request = AddCheckpoint::parse(body)?;
        self.witness.add_checkpoint(&request, &self.latest, Time::new(NOW).unwrap())
    }

    /// Status, content type if it is special, and body.
    fn post(&mut self, body: &str) -> (u16, String) {
        match self.decide(body.as_bytes()) {
            Ok(accepted) => {
                assert_eq!(accepted.old, self.latest);
                self.latest = accepted.new;
                (200, accepted.body())
            }
            Err(refusal) => {
                let is_size = refusal.content_type() == SIZE_CONTENT_TYPE;
                assert_eq!(is_size, refusal.status() == 409);
                (refusal.status(), refusal.body())
            }
        }
    }
}

const SIGSUM: &str =
    "sigsum.org/v1/tree/4d6d8825a6bb689d459628312889dfbb0bcd41b5211d9e1ce768b0ff0309e562";

/// The requests of litewitness's test, with the statuses that it answers, but for two details: an
/// unknown log is 403 there and 404 in the current C2SP tlog-witness, and the signature that is
/// wrong has another encoding of the same bytes there, which this crate would call malformed.
#[test]
fn a_witness_answers_as_litewitness_does() {
    let mut public = [0; 32];
    hex::decode_to_slice(
        "ffdc2d4d98e4124d3feaf788c0c2f9abfd796083d1f0495437f302ec79cf100f",
        &mut public,
    )
    .unwrap();
    let log = VerifierKey::ed25519(name(SIGSUM), &public).unwrap();
    let mut witness = Served::new(&SIGSUM.parse().unwrap(), vec![log]);
    let requests = include_str!("../vectors/litewitness.txt");
    let mut requests = requests.split("=== ").skip(1).collect::<Vec<_>>().into_iter();
    for expected in [200, 403, 404, 422, 422, 200, 409, 200, 409] {
        let (status, body) = requests.next().unwrap().split_once('\n').unwrap();
        assert_eq!(status.parse(), Ok(expected));
        let size = witness.latest.size;
        let (status, answer) = witness.post(body);
        assert_eq!(status, expected, "{answer}");
        match expected {
            200 => assert!(answer.starts_with("— witness.example/w1 ")),
            409 => assert_eq!(answer, format!("{size}\n")),
            _ => assert_eq!(witness.latest.size, size),
        }
    }
    assert_eq!(requests.next(), None);
    let root = "42bb57ad06420afa4882c4a63ac6a1ec77480b330b2f20dfc53a0caa5f564e36";
    assert_eq!(hex::encode(witness.latest.root.as_bytes()), root);
    assert_eq!(witness.latest.size, 5);
}

const MONKEYS: &str = "monkeys+db4d9f7e+AULaJMvTtDLHPUcUrjdDad9vDlh/PTfC2VV60JUtCfWT";
const MONKEYS_SECRET: &str =
    "PRIVATE+KEY+monkeys+db4d9f7e+ATWIAF3yVBG+Hv1rZFQoNt/BaURkLPtOFMAM2HrEeIr6";
const MONKEYS_5: &str = "monkeys\n5\n41smjBUiAU70EtKlT6lIOIYtRTYxYXsDB+XHfcvu/BE=\n\n— monkeys 202fftzGl3LVoqjXfwCFZZXs8I+5G22+Ek2K0AOyBuSJ/8/CZawNF+6fNlTKOCd622pbzJNkkJFWuw9DbicZCkEx9AY=\n";
const MONKEYS_8: &str = "monkeys\n8\nV8K9aklZ4EPB+RMOk1/8VsJUdFZR77GDtZUQq84vSbo=\n\n— monkeys 202ffoUEboiQYpHzICeaFmoy3RNviHTpAxYrq/eO4QQVQMvu9UebKBMX2MJC76NLthZaKsnKbCA8GxrjePZhvDCH7Ag=\n";
const MONKEYS_PROOF: [&str; 4] = [
    "b9e1d62618f7fee8034e4c5010f727ab24d8e4705cb296c374bf2025a87a10d2",
    "aac66cd7a79ce4012d80762fe8eec3a77f22d1ca4145c3f4cee022e7efcd599d",
    "89d0f753f66a290c483b39cd5e9eafb12021293395fad3d4a2ad053cfbcfdc9e",
    "29e40bb79c966f4c6fe96aff6f30acfce5f3e8d84c02215175d6e018a5dee833",
];

fn monkeys_proof() -> Vec<Hash> {
    MONKEYS_PROOF.iter().map(|h| Hash::from_slice(&hex::decode(h).unwrap()).unwrap()).collect()
}

fn request(old: u64, proof: Vec<Hash>, checkpoint: &SignedCheckpoint) -> String {
    AddCheckpoint::new(old, proof, checkpoint.clone()).unwrap().to_string()
}

/// A checkpoint of the log `monkeys`.
fn monkeys(size: u64, root: Hash) -> SignedCheckpoint {
    let signer: SignerKey = MONKEYS_SECRET.parse().unwrap();
    let checkpoint = Checkpoint::new("monkeys".parse().unwrap(), TreeHead { size, root });
    let signature = signer.sign(&checkpoint.to_string());
    SignedCheckpoint::new(checkpoint, signature).unwrap()
}

#[test]
fn a_witness_answers_as_that_of_transparency_dev() {
    let (five, eight) = (signed(MONKEYS_5), signed(MONKEYS_8));
    let root = five.checkpoint().head().root;
    let other = Hash::leaf(b"other");
    let none = Vec::new;
    for (what, latest, old, new, proof, status) in [
        ("consistent", &five, 5, &eight, monkeys_proof(), 200),
        ("another old size", &five, 2, &eight, none(), 409),
        (
            "proof from the empty tree",
            &monkeys(0, Hash::of_empty_tree()),
            0,
            &five,
            monkeys_proof(),
            422,
        ),
        ("from the empty tree", &monkeys(0, Hash::of_empty_tree()), 0, &five, none(), 200),
        ("the same checkpoint", &five, 5, &five, none(), 200),
        ("the same checkpoint with a proof", &five, 5, &five, vec![root], 422),
        ("another root of the same size", &five, 5, &monkeys(5, other), none(), 422),
        ("no proof", &monkeys(4, root), 4, &five, none(), 422),
        ("smaller", &eight, 8, &five, monkeys_proof(), 400),
        ("garbage", &five, 5, &eight, vec![other; 4], 422),
        (
            "a proof too long",
            &five,
            5,
            &eight,
            [monkeys_proof(), none(), vec![other]].concat(),
            422,
        ),
        (
            "an empty tree with leaves",
            &monkeys(0, Hash::of_empty_tree()),
            0,
            &monkeys(0, other),
            none(),
            422,
        ),
    ] {
        let mut served = Served::new(&"monkeys".parse().unwrap(), vec![key(MONKEYS)]);
        served.latest = latest.checkpoint().head();
        let (answer, body) = served.post(&request(old, proof, new));
        assert_eq!(answer, status, "{what}: {body}");
    }
}

#[test]
fn the_order_of_checks_is_that_of_c2sp() {
    let mut served = Served::new(&"monkeys".parse().unwrap(), vec![key(MONKEYS)]);
    served.latest = signed(MONKEYS_5).checkpoint().head();
    let forged = MONKEYS_8.replace("\n8\n", "\n3\n");
    // The origin is unknown, and the rest is wrong too: 404. The signature is wrong, and the old
    // size too: 403. The old size exceeds the checkpoint's and is not ours either: 400.
    let unknown = format!("old 4\n\n{}", forged.replacen("monkeys", "gorillas", 1));
    assert_eq!(served.post(&unknown).0, 404);
    assert_eq!(served.post(&format!("old 4\n\n{forged}")).0, 403);
    assert_eq!(served.post(&format!("old 9\n\n{MONKEYS_8}")).0, 400);
    assert_eq!(served.post(&format!("old 4\n\n{MONKEYS_8}")).0, 409);
    assert_eq!(served.post(&format!("old 5\n\n{MONKEYS_8}")).0, 422);
    assert_eq!(served.post("old 5\n").0, 400);
}

#[test]
fn an_unsigned_or_misnamed_checkpoint_is_forbidden() {
    let served = Served::new(&"monkeys".parse().unwrap(), vec![key(MONKEYS)]);
    let body = |note: &str| format!("old 0\n\n{note}").into_bytes();
    let bananas = SignerKey::from_seed(name("bananas"), &[1; 32]);
    let text = signed(MONKEYS_5).note().text().to_owned();
    let by_other = format!("{text}\n{}\n", bananas.sign(&text));
    let refused = served.decide(&body(&by_other)).unwrap_err();
    assert_eq!(refused, Refusal::Untrusted(Untrusted::NoKnownKey));
    // A valid signature does not excuse an invalid one of a known key.
    let forged = MONKEYS_8.lines().last().unwrap();
    let refused = served.decide(&body(&format!("{MONKEYS_5}{forged}\n"))).unwrap_err();
    assert!(matches!(refused, Refusal::Untrusted(Untrusted::Forged { .. })), "{refused}");
}

#[test]
fn an_accepted_checkpoint_has_only_verified_signatures() {
    let served = Served::new(&"monkeys".parse().unwrap(), vec![key(MONKEYS)]);
    let mut checkpoint = signed(MONKEYS_5);
    let unknown = SignerKey::from_seed(name("unknown"), &[1; 32]);
    checkpoint.add(unknown.sign(checkpoint.note().text())).unwrap();
    let accepted = served.decide(request(0, vec![], &checkpoint).as_bytes()).unwrap();
    let expected = format!("{MONKEYS_5}{}", accepted.body());
    assert_eq!(accepted.checkpoint.to_string(), expected);
    let verified = accepted.checkpoint.note().verify(&[served.witness.verifier()]).unwrap();
    assert_eq!(verified[0].statement, Statement::Cosigned { time: NOW });
    assert_eq!((accepted.old, accepted.new.size), (TreeHead::empty(), 5));
}

#[test]
fn a_log_adds_the_cosignatures_of_known_witnesses() {
    let served = Served::new(&"monkeys".parse().unwrap(), vec![key(MONKEYS)]);
    let mut checkpoint = signed(MONKEYS_5);
    let body = served.decide(request(0, vec![], &checkpoint).as_bytes()).unwrap().body();
    let other = Cosigner::from_seed(name("witness.example/w2"), &[8; 32]);
    let unknown = other.cosign(checkpoint.checkpoint(), Time::new(NOW).unwrap());
    let both = format!("{unknown}\n{body}");
    let added = checkpoint.add_cosignatures(both.as_bytes(), &[served.witness.verifier()]);
    assert_eq!(added.unwrap().len(), 1);
    assert_eq!(checkpoint.to_string(), format!("{MONKEYS_5}{body}"));
    let before = checkpoint.clone();
    let stranger = checkpoint.add_cosignatures(body.as_bytes(), &[other.verifier()]);
    assert_eq!(stranger, Err(InvalidAnswer::Untrusted(Untrusted::NoKnownKey)));
    let forged = other.cosign(signed(MONKEYS_8).checkpoint(), Time::new(NOW).unwrap());
    let forged = checkpoint.add_cosignatures(format!("{forged}\n").as_bytes(), &[other.verifier()]);
    assert!(matches!(forged, Err(InvalidAnswer::Untrusted(Untrusted::Forged { .. }))));
    for invalid in [b"".as_slice(), b"\n", b"cosigned\n", b"\xff\n", body.trim_end().as_bytes()] {
        assert!(checkpoint.add_cosignatures(invalid, &[served.witness.verifier()]).is_err());
    }
    assert_eq!(checkpoint, before);
}

#[test]
fn malformed_requests_are_refused() {
    use InvalidRequest as E;
    let hash = Hash::leaf(b"");
    let many = format!("old 1\n{}\n{MONKEYS_8}", format!("{hash}\n").repeat(PROOF_HASHES_MAX + 1));
    let long = "x".repeat(REQUEST_BYTES_MAX + 1);
    let bytes = long.len();
    for (body, expected) in [
        (String::new(), E::NoCheckpoint),
        ("old 1".to_owned(), E::NoCheckpoint),
        (long, E::TooLong { bytes }),
        (format!("10 stuff\n\n{MONKEYS_8}"), E::OldSize),
        (format!("10\n\n{MONKEYS_8}"), E::OldSize),
        (format!("old 01\n\n{MONKEYS_8}"), E::OldSize),
        (format!("old  1\n\n{MONKEYS_8}"), E::OldSize),
        (format!("old +1\n\n{MONKEYS_8}"), E::OldSize),
        (format!("old 18446744073709551616\n\n{MONKEYS_8}"), E::OldSize),
        (format!("Old 1\n\n{MONKEYS_8}"), E::OldSize),
        (format!("\n\n{MONKEYS_8}"), E::OldSize),
        (format!("old 1\nabc=\n\n{MONKEYS_8}"), E::Proof { line: 1 }),
        (format!("old 1\n{hash}\n{hash}=\n\n{MONKEYS_8}"), E::Proof { line: 2 }),
        (format!("old 1\r\n\n{MONKEYS_8}"), E::OldSize),
        (many, E::LongProof { hashes: PROOF_HASHES_MAX + 1 }),
        (
            format!("old 1\n\n{}", signed(MONKEYS_8).note().text()),
            E::Checkpoint(InvalidCheckpoint::Note(InvalidNote::Unsigned)),
        ),
        (format!("old 1\n\n{}", MONKEYS_8.replace("\n8", "\n08")), InvalidCheckpoint::Size.into()),
    ] {
        let refused = AddCheckpoint::parse(body.as_bytes()).unwrap_err();
        assert_eq!(refused, expected);
        assert_eq!(Refusal::Invalid(refused).status(), 400);
    }
    let proof = vec![hash; PROOF_HASHES_MAX + 1];
    let refused = AddCheckpoint::new(1, proof, signed(MONKEYS_8)).unwrap_err();
    assert_eq!(refused, E::LongProof { hashes: PROOF_HASHES_MAX + 1 });
}

#[test]
fn the_largest_request_is_within_the_limit() {
    let line = format!("{MONKEYS_8}{}", "— unknown QUJDREU=\n".repeat(90));
    let filled = line.replacen('\n', &format!("{}\n", " ".repeat(200)), 1);
    let proof = format!("{}\n", Hash::leaf(b"")).repeat(PROOF_HASHES_MAX);
    let head = format!("old {}\n{proof}\n", u64::MAX);
    assert!(AddCheckpoint::parse(format!("{head}{filled}").as_bytes()).is_ok());
    assert_eq!(head.len() + NOTE_BYTES_MAX, REQUEST_BYTES_MAX);
}

#[test]
fn a_witness_refuses_a_log_that_it_cannot_check() {
    let mut witness = Witness::new(Cosigner::from_seed(name("w"), &[9; 32]));
    let origin: Origin = "log.example".parse().unwrap();
    let refused = witness.add_log(origin.clone(), vec![]);
    assert_eq!(refused, Err(InvalidLog::NoKey { origin: origin.clone() }));
    let refused = witness.add_log(origin.clone(), vec![key(MONKEYS), key(MONKEYS)]);
    assert_eq!(refused, Err(InvalidLog::SameKeys { origin: origin.clone() }));
    let own = SignerKey::from_seed(name("log.example"), &[9; 32]);
    let refused = witness.add_log(origin.clone(), vec![own.verifier().clone()]);
    assert_eq!(refused, Err(InvalidLog::OwnKey { origin }));
}

#[test]
fn the_size_of_a_conflict_is_read_strictly() {
    assert_eq!(parse_size(b"20852163\n"), Some(20_852_163));
    assert_eq!(parse_size(b"0\n"), Some(0));
    for invalid in [b"".as_slice(), b"\n", b"5", b"05\n", b"+5\n", b" 5\n", b"5\n\n", b"\xff\n"] {
        assert_eq!(parse_size(invalid), None);
    }
}

#[test]
fn a_checkpoint_is_served_under_the_hash_of_its_origin() {
    let hash = "46613be2987d5d316f5ad065e4aa2eee26ccdd3de17a3735cd0da18156a22bdd";
    assert_eq!(origin_hash(&"go.sum database tree".parse().unwrap()), hash);
}

prop_compose! {
    fn growth()(sizes in prop::collection::vec(0..60_u64, 1..8), forks in prop::collection::vec(any::<bool>(), 8))
        -> Vec<(u64, bool)> { sizes.into_iter().zip(forks).collect() }
}

proptest! {
    #[test]
    fn a_formatted_request_parses_back(
        old: u64, size: u64, root: [u8; 32],
        proof in prop::collection::vec(any::<[u8; 32]>(), 0..=PROOF_HASHES_MAX),
    ) {
        let proof = proof.into_iter().map(Hash::new).collect();
        let checkpoint = monkeys(size, Hash::new(root));
        let request = AddCheckpoint::new(old, proof, checkpoint).unwrap();
        prop_assert_eq!(AddCheckpoint::parse(request.to_string().as_bytes()), Ok(request));
    }

    #[test]
    fn parsing_any_request_never_panics(bytes: Vec<u8>, text in "(old |[0-9a=\n—]){0,40}") {
        let _ = AddCheckpoint::parse(&bytes);
        let _ = AddCheckpoint::parse(text.as_bytes());
        let _ = parse_size(&bytes);
    }

    /// Whatever a log signs, its witness cosigns one history that only grows.
    #[test]
    fn a_witness_cosigns_one_history(growth in growth()) {
        let honest = Log::numbered(60);
        let forked = Log::new((0..60_u64).map(|n| format!("fork {n}").into_bytes()));
        let mut served = Served::new(&"monkeys".parse().unwrap(), vec![key(MONKEYS)]);
        let mut cosigned: Option<bool> = None;
        for (size, fork) in growth {
            let log = if fork { &forked } else { &honest };
            let old = served.latest.size;
            let proof = log.consistency(old.min(size), size).unwrap();
            let body = request(old, proof, &monkeys(size, log.roots[size as usize]));
            let (status, answer) = served.post(&body);
            let same = size == 0 || old == 0 || cosigned == Some(fork);
            let expected = if old > size { 400 } else if same { 200 } else { 422 };
            prop_assert_eq!(status, expected, "{}", answer);
            if status == 200 && size > 0 {
                cosigned = Some(fork);
            }
            prop_assert!(served.latest.size >= old);
        }
    }
}

#[test]
fn a_fork_is_reported_as_inconsistent() {
    let mut served = Served::new(&"monkeys".parse().unwrap(), vec![key(MONKEYS)]);
    served.latest = signed(MONKEYS_5).checkpoint().head();
    let forked = monkeys(5, Hash::leaf(b"other"));
    let refused = served.decide(request(5, vec![], &forked).as_bytes()).unwrap_err();
    assert!(matches!(refused, Refusal::Inconsistent(InvalidProof::WrongNewRoot { .. })));
    assert_eq!(refused.status(), 422);
}
