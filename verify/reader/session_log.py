"""The log of sessions in an exported file: its leaves, their proofs, and what they anchor."""

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

import checkpoints
import strict_json
from checkpoints import Checkpoint, Invalid, Key
from items import parse_base64
from records import ENDING_OF_VERDICT, is_session_id
from times import I64_MAX, I64_MIN, nine_digits, parse_time

LEAVES_MAX = 1000
LEAF_NAME = "daybook session 1"
RETENTION_NAME = "daybook retention 1"
REASON_CHARS_MAX = 500
LEAF_BYTES_MAX = 8192
HEAD_NAME = "daybook shard 1"
HASH_BYTES = 32
LOGGED_STATUSES = {"SESSION_INITIATED", *ENDING_OF_VERDICT}


@dataclass(frozen=True)
class LoggedLeaf:
    """A leaf as the witness line states it. In a log with shards a proven leaf has the head of its shard."""

    index: int
    leaf: str
    proof: list[bytes] | None
    shard: "LoggedLeaf | None" = None


@dataclass(frozen=True)
class ExportedLog:
    checkpoint: str | None
    leaves: list[LoggedLeaf]


@dataclass(frozen=True)
class Leaf:
    """The contents of a leaf. `proven` says that its inclusion in the checkpoint holds."""

    session: str
    sk: str
    status: str
    hash: str
    expires_at: int
    proven: bool

    def is_verdict(self) -> bool:
        return self.status in ENDING_OF_VERDICT

    def expires_after_its_event(self) -> bool:
        """A leaf states 0 for an event without `ExpiresAt`."""
        instant = parse_time(self.sk.removeprefix("EVENT#")) if self.sk.startswith("EVENT#") else None
        return instant is not None and self.expires_at > instant // 1_000_000_000


@dataclass(frozen=True)
class Retention:
    """The contents of a leaf that says what was decided about keeping the session."""

    session: str
    action: str
    subject: str
    proven: bool


@dataclass
class LogReport:
    """What the log of a file says about its session."""

    leaves: list[Leaf] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    unmet: list[str] = field(default_factory=list)
    pruned: Retention | None = None
    signed: bool = False
    cosigned: bool = False


def exported_log(value: Any) -> ExportedLog | None:
    """Reads the member `log` of a witness; None if it has another form."""
    if not isinstance(value, dict) or set(value) != {"checkpoint", "leaves"}:
        return None
    note, leaves = value["checkpoint"], value["leaves"]
    if not (note is None or isinstance(note, str)) or not isinstance(leaves, list):
        return None
    parsed = [_logged_leaf(leaf) for leaf in leaves]
    if len(parsed) > LEAVES_MAX or None in parsed:
        return None
    return ExportedLog(note, [leaf for leaf in parsed if leaf is not None])


def _logged_leaf(value: Any) -> LoggedLeaf | None:
    if not isinstance(value, dict) or "shard" not in value:
        return _entry(value)
    leaf = _entry({name: member for name, member in value.items() if name != "shard"})
    head = _entry(value["shard"])
    if leaf is None or head is None or leaf.proof is None or head.proof is None:
        return None
    return LoggedLeaf(leaf.index, leaf.leaf, leaf.proof, head)


def _entry(value: Any) -> LoggedLeaf | None:
    if not isinstance(value, dict) or set(value) != {"index", "leaf", "proof"}:
        return None
    index, leaf, proof = value["index"], value["leaf"], value["proof"]
    if not strict_json.is_whole(index) or index >= 2**64 or not isinstance(leaf, str):
        return None
    if proof is None:
        return LoggedLeaf(index, leaf, None)
    if not isinstance(proof, list):
        return None
    hashes = [_hash(text) for text in proof]
    if None in hashes:
        return None
    return LoggedLeaf(index, leaf, [raw for raw in hashes if raw is not None])


def _hash(text: Any) -> bytes | None:
    raw = parse_base64(text) if isinstance(text, str) else None
    return raw if raw is not None and len(raw) == HASH_BYTES else None


def check_log(
    log: ExportedLog | None, session: str, keys: list[Key], witnesses: list[Key]
) -> LogReport:
    """Checks the checkpoint and the leaves; the records are not looked at."""
    report = LogReport()
    asked = bool(keys or witnesses)
    if log is None:
        if asked:
            report.unmet.append("the file has no log of sessions")
        return report
    checkpoint = _checkpoint(log, report)
    if checkpoint is None and asked and not report.problems:
        report.unmet.append("the file has no checkpoint")
    if checkpoint is not None and asked:
        _check_signatures(checkpoint, keys, witnesses, report)
    held: set[str] = set()
    for logged in sorted(log.leaves, key=lambda leaf: leaf.index):
        _check_leaf(logged, session, checkpoint, report, held)
    if asked and any(leaf.proof is None for leaf in log.leaves):
        report.unmet.append("a leaf is newer than the checkpoint")
    if asked and not report.leaves:
        report.unmet.append("there is no leaf of a record of this session")
    return report


def _checkpoint(log: ExportedLog, report: LogReport) -> Checkpoint | None:
    if log.checkpoint is None:
        return None
    try:
        return checkpoints.parse_checkpoint(log.checkpoint)
    except Invalid as error:
        report.problems.append(str(error))
        return None


def _check_signatures(
    checkpoint: Checkpoint, keys: list[Key], witnesses: list[Key], report: LogReport
) -> None:
    if not keys:
        report.unmet.append("cosignatures prove nothing without a key of the log")
        return
    try:
        checkpoints.check_signatures(checkpoint, keys)
    except Invalid as error:
        report.problems.append(str(error))
        return
    missing = [key.name for key in witnesses if not checkpoints.cosigned_by(checkpoint, key)]
    report.signed = True
    report.cosigned = bool(witnesses) and not missing
    report.unmet += [f"the witness `{name}` did not cosign the checkpoint" for name in missing]


def _check_leaf(
    logged: LoggedLeaf, session: str, checkpoint: Checkpoint | None, report: LogReport, held: set[str]
) -> None:
    try:
        decided = parse_retention(logged.leaf)
        fields = parse_leaf(logged.leaf) if decided is None else decided
        if fields[0] != session:
            raise Invalid(f"leaf {logged.index} is of another session")
        if logged.proof is not None and checkpoint is not None:
            _check_proof(logged, checkpoint, session)
    except Invalid as error:
        report.problems.append(str(error))
        return
    proven = logged.proof is not None and checkpoint is not None
    if decided is not None:
        _decide(Retention(*decided, proven=proven), report, held)
        return
    report.pruned = None
    report.leaves.append(Leaf(*parse_leaf(logged.leaf), proven=proven))


def _decide(decided: Retention, report: LogReport, held: set[str]) -> None:
    if decided.action == "hold":
        held.add(decided.subject)
    elif decided.action == "release":
        held.discard(decided.subject)
    else:
        report.pruned = decided
        if held:
            report.problems.append("a session was pruned that is held")
        elif not any(leaf.is_verdict() and leaf.hash == decided.subject for leaf in report.leaves):
            report.problems.append("a verdict was pruned that no leaf before it names")


PRINCIPAL = re.compile(r"unknown|(os-user|token|aws-arn|service):[!-~]{1,2048}")
LABEL = re.compile(r"[A-Za-z0-9._-]{1,64}")


def parse_retention(text: str) -> tuple[str, str, str] | None:
    """Session, action and subject of the leaf of a decision; None for anything else."""
    try:
        value = strict_json.parse(text)
    except strict_json.NotJson:
        return None
    if not isinstance(value, list) or len(value) != 7 or value[0] != RETENTION_NAME:
        return None
    if not all(isinstance(part, str) for part in value) or leaf_text(value) != text:
        return None
    _, session, action, subject, at, by, reason = value
    instant = parse_time(at)
    is_subject = action == "prune" or (action in ("hold", "release") and LABEL.fullmatch(subject))
    is_time = instant is not None and nine_digits(instant) == at
    is_short = len(reason) <= REASON_CHARS_MAX and len(text.encode()) <= LEAF_BYTES_MAX
    if not (is_subject and is_time and is_short and PRINCIPAL.fullmatch(by) and is_session_id(session)):
        return None
    return (session, action, subject)


def parse_leaf(text: str) -> tuple[str, str, str, str, int]:
    """Reads the contents of a leaf; raises Invalid for any other bytes."""
    try:
        value = strict_json.parse(text)
    except strict_json.NotJson:
        raise Invalid("a leaf is not JSON") from None
    if not isinstance(value, list) or len(value) != 6 or value[0] != LEAF_NAME:
        raise Invalid("a leaf has another form")
    _, session, sk, status, item_hash, expires_at = value
    if not all(isinstance(part, str) for part in value[:5]) or type(expires_at) is not int:
        raise Invalid("a leaf has another form")
    if status not in LOGGED_STATUSES:
        raise Invalid(f"events with the status `{status}` are not logged")
    if not I64_MIN <= expires_at <= I64_MAX or leaf_text(value) != text:
        raise Invalid("a leaf has another form")
    return (session, sk, status, item_hash, expires_at)


def leaf_text(fields: list[Any]) -> str:
    """The contents of a leaf. Python escapes in JSON strings what the format escapes."""
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def parse_head(text: str) -> tuple[str, int, bytes]:
    """Reads a head of a shard: shard, number of leaves, root; raises Invalid for any other bytes."""
    try:
        value = strict_json.parse(text)
    except strict_json.NotJson:
        raise Invalid("the head of a shard is not JSON") from None
    if not isinstance(value, list) or len(value) != 4 or value[0] != HEAD_NAME:
        raise Invalid("the head of a shard has another form")
    _, shard, size, root = value
    raw = _hash(root)
    if not isinstance(shard, str) or type(size) is not int or raw is None:
        raise Invalid("the head of a shard has another form")
    if not (len(shard) == 1 and shard in "0123456789abcdef" and 1 <= size <= I64_MAX and leaf_text(value) == text):
        raise Invalid("the head of a shard has another form")
    return (shard, size, raw)


def _check_proof(logged: LoggedLeaf, checkpoint: Checkpoint, session: str) -> None:
    size, root = checkpoint.size, checkpoint.root
    if logged.shard is not None:
        _check_inclusion(logged.shard, size, root)
        shard, size, root = parse_head(logged.shard.leaf)
        if shard != hashlib.sha256(session.encode()).hexdigest()[0]:
            raise Invalid(f"leaf {logged.index} is in another shard than its session")
    _check_inclusion(logged, size, root)


def _check_inclusion(logged: LoggedLeaf, size: int, root: bytes) -> None:
    leaf = checkpoints.leaf_hash(logged.leaf.encode())
    if logged.proof is None or not checkpoints.inclusion_holds(logged.index, size, leaf, logged.proof, root):
        raise Invalid(f"the proof of leaf {logged.index} does not hold")
