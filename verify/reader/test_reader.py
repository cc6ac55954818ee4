"""Tests of the reader against the record format's worked examples and RFC 8032."""

import copy
import hashlib
import json
import unittest
from pathlib import Path

import checkpoints
import ed25519
import edges
import exporting
import reader
import session_log
from checkpoints import Key, parse_checkpoint
from items import Item, canonical_bytes, item_from_json
from records import event_id
from requests_check import missing_texts, text_hash
from times import nine_digits, parse_time

HERE = Path(__file__).parent
VECTOR = (HERE / "bases" / "vector.jsonl").read_bytes()
BEFORE_EXPIRY, EXPIRY = 1_800_000_000, 1_803_033_000
SECRET = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
PUBLIC = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
SIGNATURE = bytes.fromhex(
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
    "d25bf5f0595bbe24655141438e7a100b"
)


def verify(raw: bytes, now: int = BEFORE_EXPIRY, **options) -> dict:
    return reader.verify(raw, now=now, **options)


def sign(secret: bytes, message: bytes) -> bytes:
    """RFC 8032, section 5.1.6."""
    digest = hashlib.sha512(secret).digest()
    scalar = (int.from_bytes(digest[:32], "little") & ((1 << 254) - 8)) | (1 << 254)
    public = encode(ed25519.multiply(scalar, ed25519.BASE))
    nonce = int.from_bytes(hashlib.sha512(digest[32:] + message).digest(), "little") % ed25519.L
    commitment = encode(ed25519.multiply(nonce, ed25519.BASE))
    challenge = int.from_bytes(hashlib.sha512(commitment + public + message).digest(), "little")
    return commitment + ((nonce + challenge * scalar) % ed25519.L).to_bytes(32, "little")


def encode(point: ed25519.Point) -> bytes:
    inverse = pow(point[2], ed25519.P - 2, ed25519.P)
    x, y = point[0] * inverse % ed25519.P, point[1] * inverse % ed25519.P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def key_text(name: str, secret: bytes, algorithm: int) -> str:
    digest = hashlib.sha512(secret).digest()
    scalar = (int.from_bytes(digest[:32], "little") & ((1 << 254) - 8)) | (1 << 254)
    raw = bytes([algorithm]) + encode(ed25519.multiply(scalar, ed25519.BASE))
    return f"{name}+{key_id(name, raw).hex()}+{exporting.base64_text(raw)}"


def key_id(name: str, raw: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + raw).digest()[:4]


def signature_line(name: str, secret: bytes, algorithm: int, message: bytes, before: bytes = b"") -> str:
    key = checkpoints.parse_key(key_text(name, secret, algorithm), algorithm)
    raw = key.id + before + sign(secret, message)
    return f"\u2014 {name} {exporting.base64_text(raw)}\n"


def with_signed_checkpoint(raw: bytes, witness_secret: bytes | None = None) -> bytes:
    lines = exporting.parse_lines(raw)
    log = lines[-1]["witness"]["log"]
    text = parse_checkpoint(log["checkpoint"]).text
    note = text + "\n" + signature_line("daybook.example/log", SECRET, 1, text.encode())
    if witness_secret is not None:
        signed = b"cosignature/v1\ntime 1767225600\n" + text.encode()
        time = (1767225600).to_bytes(8, "big")
        note += signature_line("witness.example", witness_secret, 4, signed, time)
    log["checkpoint"] = note
    return exporting.dump_lines(lines)


class WorkedExamples(unittest.TestCase):
    def test_canonical_bytes_and_hash_of_the_example(self):
        item = item_from_json(
            {"PK": {"S": "SESSION#abc"}, "SK": {"S": "EVENT#1"}, "Status": {"S": "DONE"},
             "V": {"N": "1"}, "Data": {"B": "/w=="}}
        )
        self.assertEqual(item.hash, "f0cf5bee2718bcb8722a27dc9196dc6b59494891a676071fdda4daeb12d0aa7e")
        attributes = item.attributes | {"PK": ("S", item.pk), "SK": ("S", item.sk)}
        self.assertEqual(
            canonical_bytes(attributes),
            b"4:DataB1:\xff2:PKS11:SESSION#abc2:SKS7:EVENT#16:StatusS4:DONE1:VN1:1",
        )

    def testevent_ids_of_the_page(self):
        session = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f"
        for name, expected in (
            ("invoker/AGENT_INVOCATION_STARTED/1", "4f8f6a2d-2886-5af5-9dba-43a4a1b4bd5c"),
            ("agent/INPUT_RECEIVED/4", "2b5aa78d-fa17-5195-a498-93c0d0b9d073"),
            ("verdict/SESSION_SUCCEEDED/10", "cd46f275-0f4f-5a2e-9156-215127892556"),
        ):
            self.assertEqual(event_id(f"{session}/{name}"), expected)

    def test_part_of_the_page(self):
        part = item_from_json(
            {"PK": {"S": "BLOB#0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f#"
                    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
             "SK": {"S": "PART#0000"}, "Bytes": {"B": "YWJj"}, "ExpiresAt": {"N": "1803033000"}}
        )
        self.assertEqual(part.hash, "a9ff07c1a0315a49d77eca7552422fd35ed59c00bcff741f4f1f03d30f852831")

    def test_times(self):
        self.assertEqual(parse_time("1970-01-01T00:00:60.5+01:00"), -3_539_500_000_000)
        self.assertEqual(parse_time("2026-11-21 10:30:00.0200000009\u221200:30"), parse_time("2026-11-21T11:00:00.02Z"))
        for text in ("2026-02-29T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00", "1600-01-01T00:00:00Z"):
            self.assertIsNone(parse_time(text), text)
        self.assertEqual(nine_digits(parse_time("2026-11-21T10:30:00.02Z")), "2026-11-21T10:30:00.020000000Z")


class VectorOfThePage(unittest.TestCase):
    def setUp(self):
        self.lines = VECTOR.splitlines(keepends=True)

    def damage(self, lines: list[bytes]) -> list[str]:
        return sorted(verify(b"".join(lines))["damage"])

    def test_file_is_the_page_s(self):
        digest = "a6c017b21fd962a1abf2fc5d7549005e107f25a9507beda33e151a62428e7c89"
        self.assertEqual(hashlib.sha256(VECTOR).hexdigest(), digest)

    def test_sealed_until_its_expiry(self):
        self.assertEqual(verify(VECTOR)["word"], "consistent")
        self.assertEqual(verify(VECTOR, EXPIRY - 1)["state"], "sealed")
        self.assertEqual(verify(VECTOR, EXPIRY)["word"], "not provable")

    def test_given_head(self):
        head = "23a9a336faddf39efe2cd51cfe1c09011702b8ffce3660ffd403141991dd9a8a"
        self.assertEqual(verify(VECTOR, head=head)["word"], "sound")
        self.assertEqual(verify(VECTOR, head="0" * 64)["word"], "damaged")

    def test_third_line_removed(self):
        hash_ = "44e9f06fbfff6396dcb0cd6d8c2def1f07f06078f10f6fd80778c452015ccd33"
        self.assertEqual(
            self.damage(self.lines[:2] + self.lines[3:]),
            ["the tail is truncated: STEP#00000001 is missing",
             "the witness does not match the records: it states 3 records, there are 2",
             f"the witness does not match the records: its last step is STEP#00000001 with {hash_}, the records' is none"],
        )

    def test_rejected_replaced(self):
        old = "44e9f06fbfff6396dcb0cd6d8c2def1f07f06078f10f6fd80778c452015ccd33"
        new = "919a6e0ac20d310265d6168b0b1fe119e329eb4fc9d1f7ab664c9808311ed17c"
        self.lines[2] = self.lines[2].replace(b"rejected", b"completed")
        self.assertEqual(
            self.damage(self.lines),
            [f"STEP#00000001 was changed: its hash is {new}, but it states {old}",
             f"line 3 was changed: STEP#00000001 hashes to {new} but the line states {old}",
             "the witness does not match the records: its last step is STEP#00000001 "
             f"with {old}, the records' is STEP#00000001 with {new}"],
        )

    def test_other_changes(self):
        one, two, three, witness = self.lines
        self.assertEqual(
            self.damage([two, one, three, witness]),
            ["EVENT#2026-11-21T10:30:00.100000001Z was reordered: it is out of order in the file"],
        )
        self.assertEqual(
            self.damage([two, three, witness]),
            ["EVENT#2026-11-21T10:30:00.000000000Z is removed",
             "the witness does not match the records: it states 3 records, there are 2"],
        )
        self.assertEqual(
            self.damage([one, two, three]),
            ["the witness does not match the records: it is missing: the file is truncated"],
        )


class NewRules(unittest.TestCase):
    """Rules that no program was compared with."""

    def test_an_open_session_without_its_first_event_is_damaged(self):
        lines = exporting.parse_lines((HERE / "bases" / "open_session.jsonl").read_bytes())
        del lines[0]
        exporting.fix_witness(lines)
        self.assertEqual(
            verify(exporting.dump_lines(lines))["damage"],
            ["the first record is missing: there is no SESSION_INITIATED"],
        )

    def test_an_undecodable_manifest_is_never_sound(self):
        lines = exporting.parse_lines(VECTOR)
        verdict = lines[1]["record"]
        verdict |= {"Payload": {"B": "KLUv/Q=="}, "PayloadEncoding": {"S": "zstd"}, "PayloadBytes": {"N": "5"}}
        exporting.fix_own_hash(verdict)
        exporting.fix_line_hash(lines[1])
        exporting.fix_witness(lines)
        self.assertFalse(verify(exporting.dump_lines(lines))["sound"])

    def test_the_first_unknown_text_of_a_request_is_missing(self):
        frame = '{"system":{"sha256":"%s"}}' % text_hash("system")
        found = {}
        for parts in ([], [frame], [frame, "system"], [frame, "system", "message"]):
            texts = Item("", "STEP#1", {"Subject": ("S", "model_request"),
                                        "Payload": ("S", json.dumps({"parts": parts}))})
            outcome = Item("", "STEP#2", {"Request": ("B", bytes.fromhex(text_hash(frame))),
                                          "Messages": ("S", json.dumps([{"sha256": text_hash("message")}]))})
            found[len(parts)] = [text for _, text in missing_texts([texts, outcome], lambda _: b"")]
        self.assertEqual(
            found,
            {0: [text_hash(frame)], 1: [text_hash("system")], 2: [text_hash("message")], 3: []},
        )


class Signatures(unittest.TestCase):
    def test_rfc_8032_vector(self):
        self.assertEqual(sign(SECRET, b""), SIGNATURE)
        self.assertTrue(ed25519.verify(PUBLIC, b"", SIGNATURE))
        self.assertFalse(ed25519.verify(PUBLIC, b"x", SIGNATURE))

    def test_signed_and_cosigned_checkpoints_are_anchors(self):
        raw = (HERE / "bases" / "with_log.jsonl").read_bytes()
        keys = [key_text("daybook.example/log", SECRET, 1)]
        witness_secret = bytes(range(32))
        witnesses = [key_text("witness.example", witness_secret, 4)]
        signed, cosigned = with_signed_checkpoint(raw), with_signed_checkpoint(raw, witness_secret)
        self.assertEqual(verify(raw)["anchors"], ["witness_line", "log"])
        self.assertEqual(verify(raw, keys=keys)["word"], "damaged")
        self.assertEqual(verify(signed, keys=keys)["anchors"], ["witness_line", "checkpoint"])
        self.assertEqual(verify(signed, keys=keys, witnesses=witnesses)["word"], "not provable")
        self.assertEqual(verify(cosigned, keys=keys, witnesses=witnesses)["anchors"], ["witness_line", "witness"])
        self.assertEqual(verify(cosigned, keys=keys, witnesses=witnesses)["word"], "sound")


class Decisions(unittest.TestCase):
    def test_a_prune_excuses_what_it_may(self):
        files = edges.decisions((HERE / "bases" / "with_log.jsonl").read_bytes())
        words = {name: reader.verify(raw, now=1_796_000_000)["word"] for name, raw in files.items()}
        pruned = {name for name, word in words.items() if word == "pruned"}
        self.assertEqual(
            pruned,
            {"pruned", "pruned-any-order", "pruned-twice", "pruned-again", "pruned-released", "reason-500"},
        )
        kept = {name for name, word in words.items() if word == "consistent"}
        self.assertEqual(kept, {"pruned-and-kept", "held-and-kept"})
        self.assertEqual({words[name] for name in words.keys() - pruned - kept}, {"damaged"})

    def test_an_unsigned_prune_is_not_proven(self):
        raw = edges.decisions((HERE / "bases" / "with_log.jsonl").read_bytes())["pruned"]
        lines = exporting.parse_lines(raw)
        log = lines[-1]["witness"]["log"]
        log["checkpoint"] = exporting.parse_lines(with_signed_checkpoint(
            (HERE / "bases" / "with_log.jsonl").read_bytes()))[-1]["witness"]["log"]["checkpoint"]
        keys = [key_text("daybook.example/log", SECRET, 1)]
        self.assertEqual(verify(exporting.dump_lines(lines), keys=keys)["word"], "not provable")


class Shards(unittest.TestCase):
    """The example of the page: a session in a log with shards."""

    SESSION = "0190a5c4-7b1e-7cc3-98c4-dc0c0c07398f"
    KEY = "daybook.example/log+5d94d7d0+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs"

    def setUp(self):
        page = (HERE.parents[1] / "docs" / "record-format.md").read_text()
        self.log = json.loads(page.split("signed with the key `" + self.KEY + "`")[1].split("```json\n")[1].split("```")[0])

    def check(self, log: dict) -> session_log.LogReport | None:
        exported = session_log.exported_log(log)
        if exported is None:
            return None
        return session_log.check_log(exported, self.SESSION, [checkpoints.parse_key(self.KEY, 1)], [])

    def test_example_is_proven(self):
        report = self.check(self.log)
        self.assertEqual((report.problems, report.unmet, report.signed), ([], [], True))
        self.assertEqual([leaf.is_verdict() for leaf in report.leaves], [False, True])

    def test_changed_heads_prove_nothing(self):
        for old, new in ((',2,', ',3,'), ('"7"', '"8"'), ("shard 1", "shard 2"), ("Zg", "Zh")):
            log = copy.deepcopy(self.log)
            log["leaves"][0]["shard"]["leaf"] = log["leaves"][0]["shard"]["leaf"].replace(old, new)
            self.assertEqual(len(self.check(log).problems), 1, new)
        for change in (
            lambda leaf: leaf["shard"].update(index=1),
            lambda leaf: leaf["shard"].update(proof=[]),
            lambda leaf: leaf["shard"].update(leaf=leaf["leaf"]),
            lambda leaf: leaf.update(index=1),
            lambda leaf: leaf.pop("shard"),
        ):
            log = copy.deepcopy(self.log)
            change(log["leaves"][0])
            self.assertEqual(len(self.check(log).problems), 1)

    def test_forms(self):
        for change in (
            lambda leaf: leaf.update(shard=None),
            lambda leaf: leaf.update(proof=None),
            lambda leaf: leaf["shard"].update(proof=None),
            lambda leaf: leaf["shard"].update(more=1),
            lambda leaf: leaf["shard"].update(shard=leaf["shard"] | {}),
        ):
            log = copy.deepcopy(self.log)
            change(log["leaves"][0])
            self.assertIsNone(self.check(log))

    def test_another_session_s_shard(self):
        """A log that files a session in a foreign shard proves nothing, whatever it signs."""
        leaf = self.log["leaves"][0]["leaf"]
        for shard, problems in (("7", 0), ("8", 1)):
            tree = exporting.base64_text(checkpoints.leaf_hash(leaf.encode()))
            head = session_log.leaf_text(["daybook shard 1", shard, 1, tree])
            text = f"daybook.example/log\n1\n{exporting.base64_text(checkpoints.leaf_hash(head.encode()))}\n"
            note = text + "\n" + signature_line("daybook.example/log", bytes([7] * 32), 1, text.encode())
            proven = {"index": 0, "leaf": head, "proof": []}
            log = {"checkpoint": note, "leaves": [{"index": 0, "leaf": leaf, "proof": [], "shard": proven}]}
            self.assertEqual(len(self.check(log).problems), problems, shard)


class Proofs(unittest.TestCase):
    def test_every_proof_of_small_trees_holds(self):
        leaves = [checkpoints.leaf_hash(bytes([n])) for n in range(9)]
        for size in range(1, 10):
            for index in range(size):
                proof = path(index, leaves[:size])
                holds = lambda found: checkpoints.inclusion_holds(index, size, leaves[index], found, root(leaves[:size]))
                self.assertTrue(holds(proof))
                self.assertFalse(holds(proof + [bytes(32)]))
                self.assertFalse(proof and holds(proof[:-1]))


def split(count: int) -> int:
    return 1 << (count - 1).bit_length() - 1


def root(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1."""
    if len(leaves) == 1:
        return leaves[0]
    k = split(len(leaves))
    return checkpoints.node_hash(root(leaves[:k]), root(leaves[k:]))


def path(index: int, leaves: list[bytes]) -> list[bytes]:
    """RFC 6962, section 2.1.1."""
    if len(leaves) == 1:
        return []
    k = split(len(leaves))
    if index < k:
        return path(index, leaves[:k]) + [root(leaves[k:])]
    return path(index - k, leaves[k:]) + [root(leaves[:k])]


if __name__ == "__main__":
    unittest.main()
