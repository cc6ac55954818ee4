"""Compares this reader with a program `daybook verify` on all files of a folder.

    python compare.py PROGRAM FOLDER [OPTION…]      options go to both, such as --head HASH
"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import reader

MEMBERS = ("session_id", "state", "head", "sound", "outcome", "word", "anchors")
# Texts of these kinds are for people: the record or line alone is compared.
FREE_TEXT = re.compile(r"^(line \d+ was changed: |the log of sessions does not hold: |.*? cannot be read: ).*$", re.S)
HASHES = re.compile(r"^line \d+ was changed: \S+ hashes to ")
MISPLACED = re.compile(r"^.* was reordered: it is out of order in the file$", re.S)


def run(command: list[str]) -> tuple[dict[str, Any], int]:
    environment = {"PATH": os.environ["PATH"], "HOME": "/tmp/py-home"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    try:
        return json.loads(done.stdout), done.returncode
    except ValueError:
        return {"error": done.stderr.decode("utf-8", "replace")[:300]}, done.returncode


def comparable(damage: list[str]) -> list[str]:
    """Damage with its free texts and its choices left out."""
    kept = []
    for text in damage:
        if MISPLACED.match(text):
            kept.append("misplaced")
        elif HASHES.match(text):
            kept.append(text)
        else:
            kept.append(FREE_TEXT.sub(r"\1…", text))
    return sorted(kept)


def differences(program: dict[str, Any], reader: dict[str, Any]) -> list[str]:
    if "error" in program or "error" in reader:
        both = "error" in program and "error" in reader
        return [] if both else [f"error: {program.get('error')} / {reader.get('error')}"]
    found = []
    for name in MEMBERS:
        if name in program and program[name] != reader[name]:
            found.append(f"{name}: {program[name]} / {reader[name]}")
    if bool(program["unmet"]) != bool(reader["unmet"]):
        found.append(f"unmet: {program['unmet']} / {reader['unmet']}")
    if sorted(program["unsealed"]) != sorted(reader["unsealed"]):
        found.append(f"unsealed: {program['unsealed']} / {reader['unsealed']}")
    theirs, ours = comparable(program["damage"]), comparable(reader["damage"])
    found += [f"only the program: {text}" for text in surplus(theirs, ours)]
    found += [f"only the reader: {text}" for text in surplus(ours, theirs)]
    return found


def surplus(texts: list[str], others: list[str]) -> list[str]:
    left = list(others)
    result = []
    for text in texts:
        if text in left:
            left.remove(text)
        else:
            result.append(text)
    return result


def classify(program: dict[str, Any], reader: dict[str, Any]) -> tuple[str, list[str]]:
    found = differences(program, reader)
    if not found:
        return "same", []
    if any(text.startswith("cannot tell") for text in reader.get("unmet", [])):
        return ("unsound" if reader["sound"] else "cannot tell"), found
    return "different", found


def compare(program: str, path: Path, options: list[str]) -> tuple[Path, str, list[str]]:
    theirs, code = run([program, "verify", "--file", str(path), "--json", *options])
    ours = read(path, options)
    kind, found = classify(theirs, ours)
    if kind == "same" and code != ours.get("code", 2):
        return path, "different", [f"exit code: {code} / {ours.get('code', 2)}"]
    return path, kind, found


def read(path: Path, options: list[str]) -> dict[str, Any]:
    """What this reader prints for the same options."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = reader.main([str(path), "--json", *options])
    try:
        return json.loads(printed.getvalue()) | {"code": code}
    except ValueError:
        return {"error": printed.getvalue()}


def main(arguments: list[str]) -> int:
    program, folder, options = arguments[0], Path(arguments[1]), arguments[2:]
    counts: dict[str, int] = {}
    for path in sorted(folder.glob("*.jsonl")):
        path, kind, found = compare(program, path, options)
        counts[kind] = counts.get(kind, 0) + 1
        if kind in ("different", "unsound"):
            print(f"{path.name}", *found, sep="\n    ", flush=True)
    print(counts)
    return 1 if counts.get("different") or counts.get("unsound") else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
