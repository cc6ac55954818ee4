"""Writes the exported files that mutations start from, made from the sample in `bases`."""

import copy
import hashlib
import json
from pathlib import Path

import checkpoints
import exporting
from exporting import Line
from session_log import leaf_text

BASES = Path(__file__).parent / "bases"
PART_BYTES = b"abc"


def records(lines: list[Line]) -> list[dict]:
    return [line["record"] for line in lines if "record" in line]


def write(name: str, lines: list[Line]) -> None:
    (BASES / f"{name}.jsonl").write_bytes(exporting.dump_lines(lines))


def open_session(lines: list[Line]) -> list[Line]:
    """The session before its end: no verdict, no end step, and no event about it."""
    kept = [
        line
        for line in lines
        if "witness" in line
        or not (line["record"]["SK"]["S"] == "STEP#00000010" or "10:30:01" in line["record"]["SK"]["S"])
    ]
    exporting.reseal(kept)
    return kept


def with_parts(lines: list[Line]) -> list[Line]:
    """Step 7 with its payload in one part."""
    digest = hashlib.sha256(PART_BYTES).hexdigest()
    step = next(record for record in records(lines) if record["SK"]["S"] == "STEP#00000007")
    del step["Payload"]
    step |= {"PayloadSha256": {"S": digest}, "PayloadParts": {"N": "1"}}
    session = step["PK"]["S"].removeprefix("SESSION#")
    part = {
        "PK": {"S": f"BLOB#{session}#{digest}"},
        "SK": {"S": "PART#0000"},
        "Bytes": {"B": exporting.base64_text(PART_BYTES)},
        "ExpiresAt": step["ExpiresAt"],
        "Hash": {"S": ""},
    }
    exporting.fix_own_hash(part)
    lines.insert(len(lines) - 1, {"record": part, "hash": ""})
    exporting.reseal(lines)
    return lines


def with_late_events(lines: list[Line]) -> list[Line]:
    """An unsealed copy of a sealed event, and an announcement as late as the verdict."""
    source = next(line for line in lines if "INPUT_RECEIVED" in json.dumps(line))
    for time in ("2026-11-21T10:30:01.050000000Z", "2026-11-21T10:30:02.000000000Z"):
        added = copy.deepcopy(source)
        added["record"] |= {"SK": {"S": f"EVENT#{time}"}, "Timestamp": {"S": time}}
        exporting.fix_own_hash(added["record"])
        exporting.fix_line_hash(added)
        lines.append(added)
    exporting.sort_records(lines)
    exporting.fix_witness(lines)
    return lines


def with_principals(lines: list[Line]) -> list[Line]:
    """A session that people triggered, answered, cancelled and resumed, by name."""
    named = {
        "EVENT#2026-11-21T10:30:00.000000000Z": "unknown",
        "STEP#00000004": "os-user:alice",
        "STEP#00000008": "token:ci",
    }
    for record in records(lines):
        if record["SK"]["S"] in named:
            record["Principal"] = {"S": named[record["SK"]["S"]]}
    source = next(line for line in lines if "INPUT_RECEIVED" in json.dumps(line))
    for status, time in (("CANCEL_REQUESTED", "0.410000000Z"), ("RESUME_REQUESTED", "0.420000000Z")):
        added = copy.deepcopy(source)
        stamp = f"2026-11-21T10:30:0{time}"
        added["record"] |= {
            "SK": {"S": f"EVENT#{stamp}"},
            "Timestamp": {"S": stamp},
            "Status": {"S": status},
            "Principal": {"S": "aws-arn:arn:aws:sts::123456789012:assumed-role/Operators/alice"},
        }
        lines.append(added)
    exporting.sort_records(lines)
    exporting.reseal(lines)
    return lines


CONTENTS = {
    "STEP#": ("Payload", "PayloadEncoding", "PayloadBytes", "Request", "Messages", "ErrorMessage", "ErrorCategory"),
    "EVENT": ("Detail", "ErrorMessage"),
}


def encrypted(lines: list[Line]) -> list[Line]:
    """An erased session: contents that nobody can decrypt, in records and in a part, and late events."""
    with_parts(lines)
    for record in records(lines):
        names = [name for name in CONTENTS.get(record["SK"]["S"][:5], ()) if name in record]
        if "EndHash" in record or "PayloadSha256" in record:
            names = [name for name in names if not name.startswith("Payload")]
        if names:
            for name in names:
                del record[name]
            record["Encrypted"] = {"B": exporting.base64_text(record["SK"]["S"].encode())}
        if "PayloadSha256" in record:
            record["PayloadEncoding"] = {"S": "encrypted-zstd"}
    exporting.reseal(lines)
    source = next(line for line in lines if "INPUT_RECEIVED" in json.dumps(line))
    erasure = {"Status": {"S": "SESSION_ERASED"}, "Detail": {"S": '{"reason":"request 1"}'}}
    garbage = {"Encrypted": {"B": exporting.base64_text(b"garbage")}}
    for time, changes in (("1.050000000Z", garbage), ("2.000000000Z", erasure)):
        added = copy.deepcopy(source)
        stamp = f"2026-11-21T10:30:0{time}"
        added["record"] |= {"SK": {"S": f"EVENT#{stamp}"}, "Timestamp": {"S": stamp}} | changes
        exporting.fix_own_hash(added["record"])
        exporting.fix_line_hash(added)
        lines.append(added)
    exporting.sort_records(lines)
    exporting.fix_witness(lines)
    return lines


def expired(lines: list[Line]) -> list[Line]:
    for record in records(lines):
        record["ExpiresAt"] = {"N": "1700000000"}
    exporting.reseal(lines)
    return lines


def with_log(lines: list[Line]) -> list[Line]:
    """Two leaves in a log of three, with a checkpoint that nobody signed."""
    session = lines[-1]["witness"]["session_id"]
    logged = [
        line["record"] | {"hash": line["hash"]}
        for line in lines[:-1]
        if line["record"].get("Status", {}).get("S") in ("SESSION_INITIATED", "SESSION_SUCCEEDED")
    ]
    leaves = [
        leaf_text(["daybook session 1", session, record["SK"]["S"], record["Status"]["S"],
                   record["hash"], int(record["ExpiresAt"]["N"])])
        for record in logged
    ]
    first, second = (checkpoints.leaf_hash(leaf.encode()) for leaf in leaves)
    other = checkpoints.leaf_hash(b"other")
    both = checkpoints.node_hash(first, second)
    root = exporting.base64_text(checkpoints.node_hash(both, other))
    text = exporting.base64_text
    lines[-1]["witness"]["log"] = {
        "checkpoint": f"daybook.example/log\n3\n{root}\n\n\u2014 daybook.example/log {text(bytes(68))}\n",
        "leaves": [
            {"index": 0, "leaf": leaves[0], "proof": [text(second), text(other)]},
            {"index": 1, "leaf": leaves[1], "proof": [text(first), text(other)]},
        ],
    }
    return lines


def with_shards(lines: list[Line]) -> list[Line]:
    """The same two leaves in a shard of three, whose head is the second of two in a root log."""
    with_log(lines)
    witness = lines[-1]["witness"]
    log, text = witness["log"], exporting.base64_text
    tree = log["checkpoint"].split("\n")[2]
    shard = hashlib.sha256(witness["session_id"].encode()).hexdigest()[0]
    head = leaf_text(["daybook shard 1", shard, 3, tree])
    other = checkpoints.leaf_hash(leaf_text(["daybook shard 1", "0", 1, text(bytes(32))]).encode())
    root = text(checkpoints.node_hash(other, checkpoints.leaf_hash(head.encode())))
    log["checkpoint"] = f"daybook.example/log\n2\n{root}\n\n\u2014 daybook.example/log {text(bytes(68))}\n"
    for leaf in log["leaves"]:
        leaf["shard"] = {"index": 1, "leaf": head, "proof": [text(other)]}
    return lines


def main() -> None:
    base = (BASES / "session.jsonl").read_bytes()
    for make in (open_session, with_parts, with_late_events, with_principals, encrypted, expired, with_log, with_shards):
        write(make.__name__, make(exporting.parse_lines(base)))


if __name__ == "__main__":
    main()
