"""Writing records back to exported files: what mutations and tests need."""

import base64
import json
from typing import Any

from exports import Export, computed_witness, session_of
from items import Item, NotAnItem, item_from_json
from records import GENESIS, is_verdict

Record = dict[str, dict[str, str]]
Line = dict[str, Any]


def parse_lines(raw: bytes) -> list[Line]:
    return [json.loads(line) for line in raw.splitlines()]


def dump_line(line: Line) -> bytes:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def dump_lines(lines: list[Line]) -> bytes:
    return b"".join(dump_line(line) for line in lines)


def item_of(record: Record) -> Item | None:
    """The record's item; None if the mutated record is no item."""
    try:
        item = item_from_json(record)
        # A lone surrogate cannot be hashed.
        item.hash
        return item
    except (NotAnItem, UnicodeEncodeError):
        return None


def fix_own_hash(record: Record) -> None:
    """Corrects the attribute `Hash` of a record that has one."""
    item = item_of(record)
    if item is not None and "Hash" in record:
        record["Hash"] = {"S": item.hash}


def fix_line_hash(line: Line) -> None:
    item = item_of(line["record"])
    if item is not None:
        line["hash"] = item.hash


def fix_witness(lines: list[Line]) -> None:
    """Makes the witness the one of the records."""
    witnesses = [line for line in lines if isinstance(line.get("witness"), dict)]
    items = [item for line in lines if "record" in line and (item := item_of(line["record"]))]
    session = session_of(Export(items))
    if not witnesses or session is None:
        return
    found = computed_witness(items, session)
    last = found.last_step
    witnesses[0]["witness"] |= {
        "session_id": session,
        "records": found.records,
        "head": found.head,
        "last_step": {"seq": last.seq, "hash": last.hash} if last else None,
    }


def sort_records(lines: list[Line]) -> None:
    """Puts the records in the order of an exported file."""
    records = [line for line in lines if "record" in line]
    others = [line for line in lines if "record" not in line]
    records.sort(key=lambda line: (line["record"]["PK"]["S"].startswith("BLOB"), line["record"]["PK"]["S"], line["record"]["SK"]["S"]))
    lines[:] = records + others


def reseal(lines: list[Line]) -> None:
    """Recomputes the chain, the manifest, all hashes and the witness, as a forger would."""
    records = [line["record"] for line in lines if "record" in line]
    steps = [record for record in records if record["SK"]["S"].startswith("STEP#")]
    previous = GENESIS
    for step in sorted(steps, key=lambda record: record["SK"]["S"]):
        step["PrevHash"] = {"S": previous}
        fix_own_hash(step)
        item = item_of(step)
        previous = item.hash if item else previous
    events = [record for record in records if record["SK"]["S"].startswith("EVENT#")]
    verdicts = [record for record in events if (item := item_of(record)) and is_verdict(item)]
    for event in events:
        fix_own_hash(event)
    if verdicts:
        seal(verdicts[0], events, steps)
    for line in lines:
        if "record" in line:
            fix_line_hash(line)
    fix_witness(lines)


def seal(verdict: Record, events: list[Record], steps: list[Record]) -> None:
    """Writes the manifest and the end's hash into a verdict."""
    sealed = [item for record in events if record is not verdict and (item := item_of(record))]
    manifest = [[item.sk, item.hash] for item in sealed if item.sk < verdict["SK"]["S"]]
    verdict["Payload"] = {"S": json.dumps(manifest, separators=(",", ":"), ensure_ascii=False)}
    for name in ("PayloadEncoding", "PayloadBytes"):
        verdict.pop(name, None)
    last = max(steps, key=lambda record: record["SK"]["S"], default=None)
    item = item_of(last) if last else None
    if item is not None:
        verdict["EndHash"] = {"S": item.hash}
    fix_own_hash(verdict)


def base64_text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
