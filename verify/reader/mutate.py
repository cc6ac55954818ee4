"""Writes mutations of exported files to a folder. One seed gives the same files each time.

    python mutate.py INPUT… --out FOLDER [--seed N] [--singles N] [--pairs N]
"""

import argparse
import copy
import json
import random
import sys
from pathlib import Path
from typing import Callable

import exporting
from exporting import Line

Bytes = list[bytes]
CHARACTERS = 'aZ09#:-_.,{}[]"\\ \u00fc'
FIXES = ("none", "line", "own", "witness", "reseal")
STATUSES = (
    "SESSION_INITIATED SESSION_SUCCEEDED SESSION_FAILED SESSION_REJECTED INPUT_RECEIVED AGENT_LOST "
    "AGENT_BACKGROUND_TASK_COMPLETED AGENT_BACKGROUND_TASK_SUSPENDED AGENT_INVOCATION_STARTED "
    "CANCEL_REQUESTED RESUME_REQUESTED UNKNOWN"
).split()
ODD_VALUES = (
    {"S": ""},
    {"S": "completed"},
    {"S": "2026-11-21T10:30:00.100000000Z"},
    {"S": "2026-11-21 10:30:60.5+01:00"},
    {"S": "0" * 64},
    {"S": "[]"},
    {"S": "unknown"},
    {"S": "os-user:alice"},
    {"S": "root:alice"},
    {"N": "0"},
    {"N": "1"},
    {"N": "2"},
    {"N": "-1"},
    {"N": "4294967296"},
    {"N": "1700000000"},
    {"N": "007"},
    {"B": "AAEC"},
    {"B": "AAE"},
    {"X": "1"},
)
NAMES = (
    "V ExpiresAt Timestamp Hash Kind Seq Epoch Runner PrevHash Node Effect Digest Call StartedAt Ending "
    "Question Subject Supersedes Status Writer EventId Attempt Step WallTime Detail EndHash Payload "
    "PayloadEncoding PayloadBytes PayloadSha256 PayloadParts Unreadable Request Messages Extra "
    "AnsweredBy Principal InputTokens ErrorMessage Day"
).split()


def delete_line(lines: Bytes, chance: random.Random) -> Bytes:
    index = chance.randrange(len(lines))
    return lines[:index] + lines[index + 1:]


def swap_lines(lines: Bytes, chance: random.Random) -> Bytes:
    first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
    changed = list(lines)
    changed[first], changed[second] = changed[second], changed[first]
    return changed


def duplicate_line(lines: Bytes, chance: random.Random) -> Bytes:
    index, place = chance.randrange(len(lines)), chance.randrange(len(lines) + 1)
    return lines[:place] + [lines[index]] + lines[place:]


def roll_back(lines: Bytes, chance: random.Random) -> Bytes:
    """Removes the last records, with or without a witness that says so."""
    kept = chance.randrange(len(lines))
    witness = [lines[-1]] if chance.random() < 0.7 else []
    return fixed_witness(lines[:kept] + witness) if chance.random() < 0.5 else lines[:kept] + witness


def drop_verdict(lines: Bytes, chance: random.Random) -> Bytes:
    """Removes the verdict and some of the last steps, as a rolled-back session would look."""
    steps = sum(b'"STEP#' in line for line in lines)
    kept_steps = chance.randrange(steps + 1)
    kept: Bytes = []
    for line in lines:
        is_step = b'"SK":{"S":"STEP#' in line
        kept_steps -= is_step
        if b'"EndHash"' not in line and (not is_step or kept_steps >= 0):
            kept.append(line)
    return fixed_witness(kept)


def change_character(lines: Bytes, chance: random.Random) -> Bytes:
    """Changes one character inside a record; the hashes stay, or are fixed if they can be."""
    index = chance.randrange(len(lines))
    text = lines[index].decode("utf-8", "replace")
    place = chance.randrange(max(len(text) - 1, 1))
    changed = text[:place] + chance.choice(CHARACTERS) + text[place + 1:]
    result = lines[:index] + [changed.encode()] + lines[index + 1:]
    return fixed(result, index, chance.choice(FIXES))


def change_witness(lines: Bytes, chance: random.Random) -> Bytes:
    parsed = parsed_or_none(lines)
    if parsed is None or "witness" not in parsed[-1]:
        return lines[:-1]
    witness = parsed[-1]["witness"]
    name, value = chance.choice(
        [
            ("records", chance.choice([0, 2, 20, -1, 1.5, True, 18446744073709551616, "21"])),
            ("head", chance.choice([None, "", "0" * 64, 7])),
            ("last_step", chance.choice([None, {}, {"seq": 3, "hash": "0" * 64}, {"seq": 99, "hash": ""}])),
            ("session_id", chance.choice(["short", "0190a5c4-7b1e-7cc3-98c4-dc0c0c073990", None])),
            ("log", chance.choice([None, {}, {"checkpoint": None, "leaves": []}])),
            ("extra", 1),
        ]
    )
    witness[name] = value
    return [exporting.dump_line(line) for line in parsed]


def change_attribute(lines: Bytes, chance: random.Random) -> Bytes:
    """Sets, removes or renames an attribute of a record."""

    def change(record: dict) -> None:
        name = chance.choice([*record, *record, chance.choice(NAMES)])
        action = chance.random()
        if action < 0.3 and name in record:
            del record[name]
        elif action < 0.5 and name in record:
            record[chance.choice(NAMES)] = record[name]
        else:
            record[name] = chance.choice(ODD_VALUES)

    return with_changed_record(lines, chance, change)


def change_key(lines: Bytes, chance: random.Random) -> Bytes:
    def change(record: dict) -> None:
        name = chance.choice(["PK", "SK", "SK", "SK"])
        old = record[name]["S"]
        record[name] = {
            "S": chance.choice(
                [old + "0", old[:-1], old.lower(), "STEP#1", "STEP#00000011", "STEP#00000000", "LEASE",
                 "EVENT#2026-11-21T10:30:00.15Z", "EVENT#2027-01-01T00:00:00.000000000Z", "EVENT#x",
                 "OTHER", "SESSION#0190a5c4-7b1e-7cc3-98c4-dc0c0c073990"]
            )
        }

    return with_changed_record(lines, chance, change)


def insert_event(lines: Bytes, chance: random.Random) -> Bytes:
    """Adds a copy of an event at another time, changed in its status or not at all."""

    def make(record: dict) -> None:
        fraction = chance.choice(["0.02", "0.10", "0.40", "0.35", "1.10", "1.2", "9.0"])
        second, digits = fraction.split(".")
        time = f"2026-11-21T10:30:0{second}.{digits}{'0' * (8 - len(digits))}{chance.randrange(3)}Z"
        record["SK"] = {"S": f"EVENT#{time}"}
        if chance.random() < 0.9:
            record["Timestamp"] = {"S": time}
        if chance.random() < 0.4:
            record["Status"] = {"S": chance.choice(STATUSES)}
        if chance.random() < 0.2:
            record["Writer"] = {"S": chance.choice(["person", "state-machine", "poller"])}

    return with_inserted_copy(lines, chance, "EVENT#", make)


def insert_step(lines: Bytes, chance: random.Random) -> Bytes:
    def make(record: dict) -> None:
        number = chance.randrange(0, 14)
        record["SK"] = {"S": f"STEP#{number:08d}"}
        record["Seq"] = {"N": str(number)}

    return with_inserted_copy(lines, chance, "STEP#", make)


SINGLES: tuple[Callable[[Bytes, random.Random], Bytes], ...] = (
    delete_line,
    swap_lines,
    duplicate_line,
    roll_back,
    drop_verdict,
    change_character,
    change_character,
    change_witness,
    change_attribute,
    change_attribute,
    change_attribute,
    change_key,
    insert_event,
    insert_event,
    insert_step,
)


def with_changed_record(
    lines: Bytes, chance: random.Random, change: Callable[[dict], None]
) -> Bytes:
    parsed = parsed_or_none(lines)
    indexes = [i for i, line in enumerate(parsed or []) if isinstance(line.get("record"), dict)]
    if parsed is None or not indexes:
        return lines[:-1]
    index = chance.choice(indexes)
    change(parsed[index]["record"])
    return fixed([exporting.dump_line(line) for line in parsed], index, chance.choice(FIXES))


def with_inserted_copy(
    lines: Bytes, chance: random.Random, prefix: str, make: Callable[[dict], None]
) -> Bytes:
    parsed = parsed_or_none(lines)
    originals = [line for line in parsed or [] if sort_key(line).startswith(prefix)]
    if parsed is None or not originals:
        return lines[:-1]
    added: Line = copy.deepcopy(chance.choice(originals))
    make(added["record"])
    parsed.append(added)
    if chance.random() < 0.9 and all(sort_key(line) or "witness" in line for line in parsed):
        exporting.sort_records(parsed)
    index = next(i for i, line in enumerate(parsed) if line is added)
    return fixed([exporting.dump_line(line) for line in parsed], index, chance.choice(FIXES))


def sort_key(line: Line) -> str:
    record = line.get("record")
    keys = [record.get("PK"), record.get("SK")] if isinstance(record, dict) else [None]
    if not all(isinstance(key, dict) and isinstance(key.get("S"), str) for key in keys):
        return ""
    return keys[1]["S"]


def fixed(lines: Bytes, index: int, fix: str) -> Bytes:
    """Fixes the hash of a line, the record's own too, the witness too, or the whole session."""
    parsed = parsed_or_none(lines)
    if fix == "none" or parsed is None or not isinstance(parsed[index].get("record"), dict):
        return lines
    if fix == "reseal":
        if all(sort_key(line) or "witness" in line for line in parsed):
            exporting.reseal(parsed)
        return [exporting.dump_line(line) for line in parsed]
    if fix in ("own", "witness"):
        exporting.fix_own_hash(parsed[index]["record"])
    exporting.fix_line_hash(parsed[index])
    result = [exporting.dump_line(line) for line in parsed]
    return fixed_witness(result) if fix == "witness" else result


def fixed_witness(lines: Bytes) -> Bytes:
    parsed = parsed_or_none(lines)
    if parsed is None:
        return lines
    exporting.fix_witness(parsed)
    return [exporting.dump_line(line) for line in parsed]


def parsed_or_none(lines: Bytes) -> list[Line] | None:
    """The lines as JSON objects, if all are."""
    try:
        parsed = [json.loads(line) for line in lines]
    except ValueError:
        return None
    return parsed if all(isinstance(line, dict) for line in parsed) else None


def mutations(base: bytes, chance: random.Random, singles: int, pairs: int):
    """Names and contents of mutated files: each single deletion first, then random ones."""
    lines = base.splitlines(keepends=True)
    for index in range(len(lines)):
        yield f"delete-{index + 1}", b"".join(lines[:index] + lines[index + 1:])
    for _ in range(singles):
        mutate = chance.choice(SINGLES)
        yield mutate.__name__, b"".join(mutate(lines, chance))
    for _ in range(pairs):
        first, second = chance.choice(SINGLES), chance.choice(SINGLES)
        changed = first(lines, chance) or lines
        yield f"{first.__name__}-{second.__name__}", b"".join(second(changed, chance))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Write mutations of exported files.")
    parser.add_argument("inputs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--singles", type=int, default=300)
    parser.add_argument("--pairs", type=int, default=300)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for path in options.inputs:
        chance = random.Random(f"{options.seed} {path.stem}")
        found = mutations(path.read_bytes(), chance, options.singles, options.pairs)
        for number, (name, contents) in enumerate(found):
            (options.out / f"{path.stem}-{number:04d}-{name}.jsonl").write_bytes(contents)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
