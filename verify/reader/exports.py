"""Reading an exported file: its lines, its witness, and the session it holds."""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Iterable

import strict_json
from items import U32_MAX, Item, NotAnItem, item_from_json
from records import event_order, is_readable_event, is_session_id, is_verdict, step_key
from session_log import ExportedLog, exported_log

LINE_BYTES_MAX = 4_194_304
LINES_MAX = 1_000_001
FILE_BYTES_MAX = 1_073_741_824
U64_MAX = 2**64 - 1

_STEP_OF_ANY_WIDTH = re.compile(r"STEP#([0-9]+)")


class NotAnExport(ValueError):
    """The file passes a limit: it is no export, and nothing is proven."""


@dataclass(frozen=True)
class LastStep:
    seq: int
    hash: str


@dataclass(frozen=True)
class Witness:
    session_id: str
    records: int
    head: str | None
    last_step: LastStep | None
    log: ExportedLog | None = None


@dataclass
class Export:
    items: list[Item] = field(default_factory=list)
    witness: Witness | None = None
    line_damage: list[str] = field(default_factory=list)


def read_export(source: bytes | Iterable[bytes | str]) -> Export:
    export = Export()
    for number, line in enumerate(_bounded_lines(source), start=1):
        problem = _read_line(line, export)
        if problem is not None:
            export.line_damage.append(f"line {number} was changed: {problem}")
    return export


def _bounded_lines(source: bytes | Iterable[bytes | str]) -> Iterable[bytes]:
    total = 0
    for number, line in enumerate(_lines(source), start=1):
        total += len(line)
        if len(line) > LINE_BYTES_MAX:
            raise NotAnExport(f"line {number} is longer than {LINE_BYTES_MAX} bytes")
        if number > LINES_MAX:
            raise NotAnExport(f"the file has more than {LINES_MAX} lines")
        if total > FILE_BYTES_MAX:
            raise NotAnExport(f"the file is longer than {FILE_BYTES_MAX} bytes")
        yield line


def _lines(source: bytes | Iterable[bytes | str]) -> Iterable[bytes]:
    """The lines with their line feeds, split at line feeds alone."""
    if isinstance(source, bytes):
        return [line for line in re.split(rb"(?<=\n)", source) if line]
    return (line.encode() if isinstance(line, str) else line for line in source)


def _read_line(line: bytes, export: Export) -> str | None:
    """Adds what a line holds to the export; returns its problem, if it has one."""
    if export.witness is not None:
        return "it follows the witness"
    try:
        value = strict_json.parse_bytes(line.removesuffix(b"\n"), unique_names=True)
    except strict_json.NotJson as error:
        return f"it is not JSON: {error}"
    if not isinstance(value, dict):
        return "it is not an object"
    if set(value) == {"witness"}:
        export.witness = _witness(value["witness"])
        return None if export.witness else "its witness is malformed"
    if set(value) != {"record", "hash"} or not isinstance(value["hash"], str):
        return "it is neither a record with a hash nor the witness"
    return _read_record(value["record"], value["hash"], export)


def _read_record(record: Any, stated: str, export: Export) -> str | None:
    try:
        item = item_from_json(record)
    except NotAnItem as error:
        return f"its record is malformed: {error}"
    export.items.append(item)
    if item.hash == stated:
        return None
    return f"{item.sk} hashes to {item.hash} but the line states {stated}"


def _witness(value: Any) -> Witness | None:
    required = {"session_id", "records", "head", "last_step"}
    if not isinstance(value, dict) or set(value) - {"log"} != required:
        return None
    session, records, head = value["session_id"], value["records"], value["head"]
    if not isinstance(session, str) or not is_session_id(session):
        return None
    if not strict_json.is_whole(records) or records > U64_MAX:
        return None
    if not (head is None or isinstance(head, str)):
        return None
    last_step = _last_step(value["last_step"])
    if last_step is None and value["last_step"] is not None:
        return None
    log = exported_log(value["log"]) if "log" in value else None
    if log is None and "log" in value:
        return None
    return Witness(session, records, head, last_step, log)


def _last_step(value: Any) -> LastStep | None:
    if not isinstance(value, dict) or set(value) != {"seq", "hash"}:
        return None
    seq, step_hash = value["seq"], value["hash"]
    if not strict_json.is_whole(seq) or seq > U32_MAX or not isinstance(step_hash, str):
        return None
    return LastStep(seq, step_hash)


def session_of(export: Export) -> str | None:
    """The session with most records; of several with as many, the last in byte order."""
    partitions = (item.pk.removeprefix("SESSION#") for item in export.items if item.pk.startswith("SESSION#"))
    counts = Counter(session for session in partitions if is_session_id(session))
    if counts:
        return max(counts, key=lambda session: (counts[session], session))
    return export.witness.session_id if export.witness else None


def witness_damage(export: Export, session: str | None) -> list[str]:
    """How the witness differs from the one that the records make."""
    stated = export.witness
    if stated is None:
        return [_witness_text("it is missing: the file is truncated")]
    if session is None:
        return []
    found = computed_witness(export.items, session)
    problems = []
    if stated.session_id != found.session_id:
        problems.append(f"its session is {stated.session_id}, theirs is {found.session_id}")
    if stated.records != found.records:
        problems.append(f"it states {stated.records} records, there are {found.records}")
    if stated.head != found.head:
        problems.append(f"its head is {_or_none(stated.head)}, the verdict is {_or_none(found.head)}")
    if stated.last_step != found.last_step:
        problems.append(
            f"its last step is {_step_text(stated.last_step)}, the records' is {_step_text(found.last_step)}"
        )
    return [_witness_text(problem) for problem in problems]


def _witness_text(problem: str) -> str:
    return f"the witness does not match the records: {problem}"


def _step_text(step: LastStep | None) -> str:
    return "none" if step is None else f"{step_key(step.seq)} with {step.hash}"


def computed_witness(items: list[Item], session: str) -> Witness:
    own = [item for item in items if item.pk == f"SESSION#{session}"]
    verdicts = [item for item in own if is_verdict(item) and is_readable_event(item)]
    head = min(verdicts, key=event_order).hash if verdicts else None
    return Witness(session, len(items), head, _highest_step(own))


def _highest_step(items: list[Item]) -> LastStep | None:
    highest: LastStep | None = None
    for item in items:
        match = _STEP_OF_ANY_WIDTH.fullmatch(item.sk)
        # A u32 has at most 10 digits; zeros in front do not count.
        if match is None or len(match[1].lstrip("0")) > 10:
            continue
        number = int(match[1].lstrip("0") or "0")
        if number <= U32_MAX and (highest is None or number >= highest.seq):
            highest = LastStep(number, item.hash)
    return highest


def _or_none(text: str | None) -> str:
    return "none" if text is None else text
