"""The verification of a session's records, in the order of steps of the record format."""

import bisect
import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Iterable

import requests_check
from items import Item
from manifest import Manifest, decode_manifest
from payloads import CannotTell, Malformed, Parts, Undecodable, is_encrypted, payload_of
from records import (
    ENDING_OF_VERDICT,
    GENESIS,
    STEP_ANNOUNCEMENTS,
    announcement_of,
    event_instant,
    event_number,
    event_order,
    has_seal,
    is_readable_event,
    is_readable_step,
    is_verdict,
    meaning_of_verdict,
    step_key,
    step_number,
)
from session_log import LogReport
from times import nine_digits, parse_time

# From the weakest to the strongest: the name in JSON, and the name in damage.
ANCHORS = {
    "witness_line": "the file's witness",
    "log": "the log of sessions",
    "execution": "the execution",
    "checkpoint": "a signed checkpoint",
    "witness": "a cosigned checkpoint",
    "head": "the given head",
}
STRENGTH = list(ANCHORS)
SUSPECT_KINDS = {"changed", "added", "reordered", "unreadable"}
EXCUSED_BY_EXPIRY = {
    "removed",
    "truncated",
    "verdict missing",
    "first missing",
    "request missing",
    "unnamed",
}
IGNORED_KEYS = {"LEASE", "WAIT", "SESSION"}
UNTOLD = "it was forged, or written at the same time as the verdict"


@dataclass(frozen=True)
class Anchor:
    kind: str
    head: str


@dataclass(frozen=True)
class Damage:
    kind: str
    text: str


@dataclass(frozen=True)
class Expected:
    """The hash that a step must have, and the record that says so."""

    number: int
    hash: str
    named_by: str
    vouched: bool


@dataclass
class Session:
    """One verification: its input, and what the steps have found so far."""

    id: str
    items: list[Item]
    anchors: list[Anchor]
    last_step: tuple[int, str] | None
    log: LogReport
    now: int

    damage: list[Damage] = field(default_factory=list)
    suspects: set[tuple[str, str]] = field(default_factory=set)
    steps: dict[int, Item] = field(default_factory=dict)
    events: dict[str, Item] = field(default_factory=dict)
    parts: dict[str, dict[str, Item]] = field(default_factory=dict)
    verdict: Item | None = None
    named_partitions: set[str] = field(default_factory=set)
    vouched: list[Item] = field(default_factory=list)
    unsealed: list[Item] = field(default_factory=list)
    cannot_tell: list[str] = field(default_factory=list)

    @cached_property
    def partition(self) -> str:
        return f"SESSION#{self.id}"

    def name(self, item: Item) -> str:
        return item.sk if item.pk == self.partition else f"{item.pk} {item.sk}"

    def is_suspect(self, item: Item) -> bool:
        return (item.pk, item.sk) in self.suspects

    def report(self, kind: str, item: Item, text: str) -> None:
        """Reports damage of a record, unless it is of a suspect kind and the record is suspect."""
        if kind in SUSPECT_KINDS:
            if self.is_suspect(item):
                return
            self.suspects.add((item.pk, item.sk))
        self.report_text(kind, f"{self.name(item)} {text}")

    def report_text(self, kind: str, text: str) -> None:
        self.damage.append(Damage(kind, text))

    def changed_named(self, item: Item, named_by: str, named: str) -> None:
        self.report("changed", item, f"was changed: its hash is {item.hash}, but {named_by} names {named}")

    def readable_events(self) -> list[Item]:
        """The readable events, suspect or not, in the order of events."""
        return sorted(filter(is_readable_event, self.events.values()), key=event_order)

    def sorted_events(self) -> list[Item]:
        return [self.events[sk] for sk in sorted(self.events)]

    def sorted_steps(self) -> list[Item]:
        return [self.steps[number] for number in sorted(self.steps)]

    def stored_parts(self, payload: Parts) -> bytes:
        """The bytes of a payload in parts; raises Undecodable if some are missing."""
        partition = self.parts.get(parts_partition(self.id, payload), {})
        if missing_parts(partition, payload):
            raise Undecodable("parts are missing")
        return joined_parts(partition, payload)


def verify_session(session: Session) -> None:
    """Does the steps of the verification; their results are in the session."""
    check_order(session)
    check_own_hashes(session)
    choose_verdict(session)
    check_chain(session)
    check_payloads(session)
    check_first_record(session)
    if session.verdict is not None:
        check_events(session, session.verdict)
    check_logged_records(session)
    check_requests(session)
    check_initiated_once(session)
    check_unnamed_parts(session)


# 1. Order


def check_order(session: Session) -> None:
    positions = [(item.pk != session.partition, item.pk, item.sk) for item in session.items]
    for index in misplaced(positions):
        item = session.items[index]
        session.report("misplaced", item, "was reordered: it is out of order in the file")


def misplaced(positions: list[tuple[bool, str, str]]) -> list[int]:
    """The indexes outside one longest run that is in order, equal positions included."""
    # `ends[n]` is the smallest last position of a run of n + 1, and `end_indexes[n]` its index.
    ends: list[tuple[bool, str, str]] = []
    end_indexes: list[int] = []
    before: list[int | None] = []
    for index, position in enumerate(positions):
        length = bisect.bisect_right(ends, position)
        before.append(end_indexes[length - 1] if length else None)
        ends[length:length + 1] = [position]
        end_indexes[length:length + 1] = [index]
    in_order = set()
    current = end_indexes[-1] if end_indexes else None
    while current is not None:
        in_order.add(current)
        current = before[current]
    return [index for index in range(len(positions)) if index not in in_order]


# 2. Own hashes


def check_own_hashes(session: Session) -> None:
    for item in session.items:
        place = place_of(session, item)
        if place is None:
            continue
        if place == "foreign":
            text = f"{session.name(item)} was added: the session has no records with such a key"
            session.report_text("added", text)
        elif not keep(session, place, item):
            session.report("duplicated", item, "is duplicated: several records have this key")
        else:
            check_own_hash(session, place, item)


def place_of(session: Session, item: Item) -> str | None:
    """`part`, `step`, `event` or `foreign`; None for a mutable record."""
    if item.pk.startswith(f"BLOB#{session.id}#"):
        return "part"
    if item.pk != session.partition:
        return "foreign"
    if item.sk.startswith("STEP#"):
        return "foreign" if step_number(item.sk) is None else "step"
    if item.sk.startswith("EVENT#"):
        return "event"
    return None if item.sk in IGNORED_KEYS else "foreign"


def keep(session: Session, place: str, item: Item) -> bool:
    """Keeps the first item of its keys."""
    if place == "step":
        number = step_number(item.sk)
        assert number is not None
        return session.steps.setdefault(number, item) is item
    if place == "event":
        return session.events.setdefault(item.sk, item) is item
    return session.parts.setdefault(item.pk, {}).setdefault(item.sk, item) is item


def check_own_hash(session: Session, place: str, item: Item) -> None:
    by_state_machine = place == "event" and item.text("Writer") == "state-machine"
    if item.text("Unreadable") is not None:
        session.report("unreadable", item, f"cannot be read: {item.text('Unreadable')}")
    elif not item.has("Hash"):
        may_lack = by_state_machine or (place == "event" and not item.has("Writer"))
        if not may_lack:
            session.report("changed", item, "was changed: its own hash is missing")
    elif item.text("Hash") == item.hash:
        if by_state_machine:
            session.report("changed", item, "was changed: it states a hash, which its writer never does")
    else:
        report_other_hash(session, place, item)


def report_other_hash(session: Session, place: str, item: Item) -> None:
    stated = item.text("Hash")
    written_as = written_sort_key(place, item)
    if stated is not None and written_as not in (None, item.sk):
        assert written_as is not None
        if item.hash_with_sort_key(written_as) == stated:
            session.report("reordered", item, f"was reordered: it was written as {written_as}")
            return
    found = "something else" if stated is None else stated
    session.report("changed", item, f"was changed: its hash is {item.hash}, but it states {found}")


def written_sort_key(place: str, item: Item) -> str | None:
    """The sort key that the item's attributes say."""
    if place == "step":
        seq = item.u32("Seq")
        return None if seq is None else step_key(seq)
    timestamp = item.text("Timestamp")
    return f"EVENT#{timestamp}" if place == "event" and timestamp is not None else None


# 3. The verdict


def choose_verdict(session: Session) -> None:
    for event in session.sorted_events():
        if not session.is_suspect(event) and not is_readable_event(event):
            session.report("unreadable", event, "cannot be read: it is malformed")
    verdicts = [event for event in session.readable_events() if is_verdict(event)]
    session.verdict = verdict_that_counts(verdicts, session.anchors)
    # The strongest first: only the first that differs is reported of the verdict.
    for anchor in reversed(session.anchors):
        by = ANCHORS[anchor.kind]
        if session.verdict is None:
            text = f"the verdict is missing: {by} names its hash, {anchor.head}"
            session.report_text("verdict missing", text)
        elif session.verdict.hash != anchor.head:
            session.changed_named(session.verdict, by, anchor.head)


def verdict_that_counts(verdicts: list[Item], anchors: list[Anchor]) -> Item | None:
    strongest = max(anchors, key=lambda anchor: (STRENGTH.index(anchor.kind), anchor.head), default=None)
    for verdict in verdicts:
        if strongest is not None and verdict.hash == strongest.head:
            return verdict
    return verdicts[0] if verdicts else None


# 4. The chain


def check_chain(session: Session) -> None:
    last, expected = last_number(session)
    for number in sorted(session.steps):
        if last is not None and number > last:
            session.report("added", session.steps[number], "was added: it follows the last step")
    report_missing_steps(session, last)
    for number in sorted(session.steps, reverse=True):
        if last is None or number <= last:
            expected = follow_chain(session, number, expected)


def last_number(session: Session) -> tuple[int | None, Expected | None]:
    """The number of the last step, and the hash that is known of it."""
    verdict = session.verdict
    if verdict is not None and has_seal(verdict):
        number, end_hash = event_number(verdict), verdict.text("EndHash")
        assert number is not None and end_hash is not None
        return number, Expected(number, end_hash, session.name(verdict), True)
    if session.last_step is not None:
        number, step_hash = session.last_step
        return number, Expected(number, step_hash, "the witness", True)
    ends = [
        number
        for number, step in session.steps.items()
        if not session.is_suspect(step) and step.text("Kind") == "end"
    ]
    return min(ends, default=None), None


def report_missing_steps(session: Session, last: int | None) -> None:
    newest = max(session.steps, default=0)
    if last is not None and last > newest:
        missing = missing_text(newest + 1, last)
        session.report_text("truncated", f"the tail is truncated: {missing} missing")
    upper = newest if last is None else min(newest, last)
    present = [number for number in sorted(session.steps) if number <= upper]
    for before, after in zip([0, *present], [*present, upper + 1]):
        if after > before + 1:
            session.report_text("removed", f"{missing_text(before + 1, after - 1)} removed")


def missing_text(first: int, last: int) -> str:
    if first == last:
        return f"{step_key(first)} is"
    return f"{step_key(first)} to {step_key(last)} are"


def follow_chain(session: Session, number: int, expected: Expected | None) -> Expected | None:
    """Checks one step; returns what it says about the step before."""
    step = session.steps[number]
    if expected is not None and expected.number != number:
        expected = None
    if expected is not None and expected.hash != step.hash:
        session.changed_named(step, expected.named_by, expected.hash)
        return None
    if expected is None and session.is_suspect(step):
        return None
    vouched = expected is not None and expected.vouched
    if vouched:
        session.vouched.append(step)
    if not is_readable_step(step):
        session.report("unreadable", step, "cannot be read: it is malformed")
        return None
    previous = step.text("PrevHash")
    assert previous is not None, "a readable step has PrevHash"
    if number > 1:
        return Expected(number - 1, previous, session.name(step), vouched)
    if previous != GENESIS:
        session.report("changed", step, "was changed: it is the first step, but names a previous one")
    return None


# 5. Payloads


def check_payloads(session: Session) -> None:
    for record in session.sorted_steps() + session.sorted_events():
        payload = parts_payload(record)
        if payload is None:
            continue
        name = parts_partition(session.id, payload)
        if name not in session.named_partitions:
            session.named_partitions.add(name)
            check_parts(session, record, name, payload)


def parts_payload(record: Item) -> Parts | None:
    try:
        payload = payload_of(record)
    except Malformed:
        return None
    return payload if isinstance(payload, Parts) else None


def parts_partition(session_id: str, payload: Parts) -> str:
    return f"BLOB#{session_id}#{payload.sha256}"


def part_key(number: int) -> str:
    return f"PART#{number:04d}"


def part_number(sk: str, payload: Parts) -> int | None:
    """The number of a part's sort key, if it is one of the payload's."""
    digits = sk.removeprefix("PART#")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10):
        return None
    number = int(digits)
    return number if sk == part_key(number) and number < payload.count else None


def missing_parts(partition: dict[str, Item], payload: Parts) -> int:
    """How many parts of a payload are missing."""
    present = sum(part_number(sk, payload) is not None for sk in partition)
    return payload.count - present


def joined_parts(partition: dict[str, Item], payload: Parts) -> bytes:
    """The parts' bytes in order of number; none if one has no bytes."""
    pieces = [partition[part_key(number)].data("Bytes") for number in range(payload.count)]
    found = [piece for piece in pieces if piece is not None]
    return b"".join(found) if len(found) == len(pieces) else b""


def check_parts(session: Session, record: Item, name: str, payload: Parts) -> None:
    partition = session.parts.get(name, {})
    missing = missing_parts(partition, payload)
    if missing:
        report_missing_parts(session, partition, name, payload, missing)
    for sk in sorted(partition):
        check_part(session, record, partition[sk], payload)
    if missing or any(session.is_suspect(part) for part in partition.values()):
        return
    found = hashlib.sha256(joined_parts(partition, payload)).hexdigest()
    if found != payload.sha256:
        by = session.name(record)
        session.report_text(
            "changed", f"{name} was changed: its hash is {found}, but {by} names {payload.sha256}"
        )


def report_missing_parts(
    session: Session, partition: dict[str, Item], name: str, payload: Parts, missing: int
) -> None:
    first = next(number for number in range(payload.count) if part_key(number) not in partition)
    if missing == 1:
        session.report_text("removed", f"{name} {part_key(first)} is removed")
        return
    last = part_key(payload.count - 1)
    session.report_text("removed", f"{name} {part_key(first)} to {name} {last} are removed")


def check_part(session: Session, record: Item, part: Item, payload: Parts) -> None:
    if part_number(part.sk, payload) is None:
        session.report("added", part, "was added: the record that names the payload has fewer parts")
    elif set(part.attributes) != {"Bytes", "ExpiresAt", "Hash"}:
        session.report("changed", part, "was changed: it has attributes that a part does not have")
    elif part.attributes["ExpiresAt"] != record.attributes.get("ExpiresAt"):
        if not session.is_suspect(record):
            by = session.name(record)
            session.report("changed", part, f"was changed: it expires at another time than {by}")


# 6. Events


def check_first_record(session: Session) -> None:
    sealed = session.verdict is not None and has_seal(session.verdict)
    steps, events = session.steps.values(), session.events.values()
    if sealed or not (steps or events):
        return
    ended = any(step.text("Kind") == "end" and is_readable_step(step) for step in steps)
    suspect = any(session.is_suspect(event) for event in events)
    initiated = any(event.text("Status") == "SESSION_INITIATED" for event in events)
    if not (ended or suspect or initiated):
        text = "the first record is missing: there is no SESSION_INITIATED"
        session.report_text("first missing", text)


def check_events(session: Session, verdict: Item) -> None:
    check_verdict_names_end(session, verdict)
    contradicting = report_contradicting_verdicts(session, verdict)
    if not has_seal(verdict):
        return
    manifest = manifest_of(session, verdict)
    if manifest is None:
        return
    for event in session.sorted_events():
        if event is not verdict:
            check_event(session, verdict, manifest, event, event.sk in contradicting)
    for sk in manifest:
        if sk not in session.events:
            session.report_text("removed", f"{sk} is removed")


def check_verdict_names_end(session: Session, verdict: Item) -> None:
    problem = verdict_problem(session, verdict)
    if problem is not None:
        session.report("verdict", verdict, f"is not a verdict of this session: {problem}")


def verdict_problem(session: Session, verdict: Item) -> str | None:
    if not is_about_step(verdict):
        return "it names no step"
    step = session.steps.get(event_number(verdict) or 0)
    if step is None or session.is_suspect(step) or not is_readable_step(step):
        return None
    if step.text("Kind") != "end":
        return f"{session.name(step)} is not an end"
    if step.text("Ending") != ENDING_OF_VERDICT[verdict.text("Status") or ""]:
        return f"{session.name(step)} ended with `{step.text('Ending')}`"
    return None


def is_about_step(event: Item) -> bool:
    return event.has("Step") and not event.has("Attempt") and not event.has("Epoch")


def report_contradicting_verdicts(session: Session, verdict: Item) -> set[str]:
    """Reports the other verdicts that do not say the same; returns their sort keys."""
    contradicting = set()
    for event in session.readable_events():
        if event is verdict or not is_verdict(event):
            continue
        if meaning_of_verdict(event) != meaning_of_verdict(verdict):
            contradicting.add(event.sk)
            reason = "it is a verdict that says something else than the one that counts"
            session.report("added", event, f"was added: {reason}")
    return contradicting


def manifest_of(session: Session, verdict: Item) -> Manifest | None:
    """The verdict's manifest; reports why there is none."""
    payload = payload_of(verdict)
    if isinstance(payload, Parts):
        partition = session.parts.get(parts_partition(session.id, payload), {})
        if missing_parts(partition, payload):
            return None
    try:
        return decode_manifest(payload, session.stored_parts)
    except CannotTell as error:
        session.cannot_tell.append(f"the manifest of {session.name(verdict)} cannot be decoded: {error}")
    except Undecodable as error:
        session.report("unreadable", verdict, f"cannot be read: its manifest cannot be decoded: {error}")
    return None


def check_event(
    session: Session, verdict: Item, manifest: Manifest, event: Item, contradicting: bool
) -> None:
    if event.sk in manifest:
        if manifest[event.sk] == event.hash:
            session.vouched.append(event)
        else:
            session.changed_named(event, session.name(verdict), manifest[event.sk])
    elif is_after(event, verdict) or is_announcement(session, manifest, event):
        if not contradicting:
            session.unsealed.append(event)
    else:
        session.report("added", event, f"was added: the verdict does not name it: {UNTOLD}")


def is_after(event: Item, verdict: Item) -> bool:
    instant = event_instant(event)
    return instant is not None and (instant, event.sk) > event_order(verdict)


def is_announcement(session: Session, manifest: Manifest, event: Item) -> bool:
    if not is_readable_event(event) or event.text("Status") not in STEP_ANNOUNCEMENTS:
        return False
    instant, _ = event_order(event)
    if event.text("Timestamp") != nine_digits(instant):
        return False
    return announces_its_step(session, event, instant) or repeats_sealed_event(session, manifest, event)


CONTENTS = ("Encrypted", "ErrorMessage", "Detail")


def announced(event: Item, encrypted: bool) -> dict:
    """The attributes in which an announcement is compared; `encrypted` if it is, and what it repeats."""
    contents = CONTENTS if encrypted else ()
    return event.without(("Writer", "Timestamp", "WallTime", "Hash", *contents))


def announces_its_step(session: Session, event: Item, instant: int) -> bool:
    if not is_about_step(event):
        return False
    step = session.steps.get(event_number(event) or 0)
    if step is None or session.is_suspect(step) or not is_readable_step(step):
        return False
    step_instant = parse_time(step.text("Timestamp") or "")
    assert step_instant is not None, "a readable step has a time"
    encrypted = is_encrypted(event) and is_encrypted(step)
    due = announcement_of(session.id, step)
    if due is not None and encrypted:
        due = {name: value for name, value in due.items() if name not in CONTENTS}
    return due == announced(event, encrypted) and step_instant <= instant


def repeats_sealed_event(session: Session, manifest: Manifest, event: Item) -> bool:
    def same(earlier: Item) -> bool:
        encrypted = is_encrypted(event) and is_encrypted(earlier)
        return announced(earlier, encrypted) == announced(event, encrypted)

    return any(
        sk < event.sk and same(earlier) for sk, earlier in session.events.items() if sk in manifest
    )


def check_initiated_once(session: Session) -> None:
    initiated = [
        event
        for event in session.readable_events()
        if event.text("Status") == "SESSION_INITIATED" and not session.is_suspect(event)
    ]
    for event in initiated[1:]:
        session.report("added", event, "was added: the session was initiated before")


def check_logged_records(session: Session) -> None:
    """The events that the leaves of the log name must be there."""
    by = ANCHORS["checkpoint" if session.log.signed else "log"]
    missing: set[str] = set()
    for leaf in session.log.leaves:
        event = session.events.get(leaf.sk)
        if event is None and leaf.sk in missing:
            continue
        if event is None:
            missing.add(leaf.sk)
            session.report_text("removed", f"{leaf.sk} is removed")
        elif event.hash != leaf.hash:
            session.changed_named(event, by, leaf.hash)


def check_requests(session: Session) -> None:
    try:
        missing = requests_check.missing_texts(session.sorted_steps(), session.stored_parts)
    except CannotTell as error:
        session.cannot_tell.append(f"the texts of requests cannot be decoded: {error}")
        return
    for step, text_hash in missing:
        reason = f"names the request text {text_hash}, which no earlier step holds"
        session.report("request missing", step, reason)


# 7. Parts without a record


def check_unnamed_parts(session: Session) -> None:
    for name, partition in session.parts.items():
        if name not in session.named_partitions:
            for part in partition.values():
                session.report("unnamed", part, "was added: no record names this payload")


# 8. Expiry


def is_expired(session: Session) -> bool:
    times = vouched_expiry(session)
    if not times:
        # What a leaf names is known to have been there.
        if session.anchors or session.log.leaves:
            return False
        times = expiry_of(unsuspected_records(session))
    return bool(times) and max(times) <= session.now


def vouched_expiry(session: Session) -> list[int]:
    vouched = list(session.vouched)
    verdict = session.verdict
    if verdict is not None and (not session.anchors or is_anchored(session, verdict)):
        vouched.append(verdict)
    leaves = [leaf.expires_at for leaf in session.log.leaves if leaf.expires_after_its_event()]
    return expiry_of(vouched) + leaves


def is_anchored(session: Session, verdict: Item) -> bool:
    return any(anchor.head == verdict.hash for anchor in session.anchors)


def expiry_of(items: Iterable[Item]) -> list[int]:
    return [time for item in items if (time := item.number("ExpiresAt")) is not None]


def unsuspected_records(session: Session) -> list[Item]:
    records = session.sorted_steps() + session.sorted_events()
    return [item for item in records if not session.is_suspect(item) and item.has("Hash")]
