"""A second verifier of Daybook's exported sessions, written from the record format's prose."""

import argparse
import json
import re
import sys
import time
from pathlib import Path
from typing import Any, Iterable

from checkpoints import COSIGNATURE_KEY, ED25519_KEY, Invalid, Key, parse_key
from exports import Export, NotAnExport, read_export, session_of, witness_damage
from records import has_seal, is_verdict
from session_log import Leaf, LogReport, Retention, check_log
from verification import (
    ANCHORS,
    EXCUSED_BY_EXPIRY,
    STRENGTH,
    Anchor,
    Damage,
    Session,
    is_expired,
    verify_session,
)

ANCHORED_FROM = STRENGTH.index("execution")
EXIT_CODES = {"sound": 0, "consistent": 0, "open": 0, "pruned": 0, "damaged": 1, "not provable": 2}
EXIT_UNKNOWN = 2


def verify(
    lines_or_bytes: bytes | Iterable[bytes | str],
    head: str | None = None,
    keys: Iterable[str] | None = None,
    witnesses: Iterable[str] | None = None,
    now: int | None = None,
) -> dict[str, Any]:
    """Verifies an exported file; returns the members of `daybook verify --json`.

    Lines keep their line feeds. Keys are texts `NAME+ID+KEY`, and `now` is in seconds since 1970;
    without it the clock of this machine is read. Raises NotAnExport for a file beyond the limits,
    and Invalid for a malformed key.
    """
    log_keys = [parse_key(text, ED25519_KEY) for text in keys or []]
    witness_keys = [parse_key(text, COSIGNATURE_KEY) for text in witnesses or []]
    now_s = int(time.time()) if now is None else now
    export = read_export(lines_or_bytes)
    session_id = session_of(export)
    if session_id is None:
        return _result_without_session(export, head)
    return _verify_export(export, session_id, head, log_keys, witness_keys, now_s)


def _verify_export(
    export: Export,
    session_id: str,
    head: str | None,
    keys: list[Key],
    witnesses: list[Key],
    now: int,
) -> dict[str, Any]:
    stated = export.witness
    log = check_log(stated.log if stated else None, session_id, keys, witnesses)
    anchors = _anchors(stated.head if stated else None, log, head)
    last_step = (stated.last_step.seq, stated.last_step.hash) if stated and stated.last_step else None
    session = Session(session_id, export.items, anchors, last_step, log, now)
    verify_session(session)
    file_damage = export.line_damage + witness_damage(export, session_id)
    file_damage += [f"the log of sessions does not hold: {problem}" for problem in log.problems]
    asked = bool(keys or witnesses)
    unmet = log.unmet + (_records_without_leaf(session) if asked and stated and stated.log else [])
    return _result(session, file_damage, unmet)


def _anchors(witness_head: str | None, log: LogReport, head: str | None) -> list[Anchor]:
    """What is known of the head, from the weakest anchor to the strongest."""
    anchors = []
    if witness_head is not None:
        anchors.append(Anchor("witness_line", witness_head))
    verdict = min((leaf for leaf in log.leaves if leaf.is_verdict()), key=_sort_key, default=None)
    if verdict is not None:
        anchors.append(Anchor(_log_anchor(log, verdict), verdict.hash))
    if head is not None:
        anchors.append(Anchor("head", head))
    return anchors


def _sort_key(leaf: Leaf) -> str:
    return leaf.sk


def _log_anchor(log: LogReport, leaf: Leaf | Retention) -> str:
    if not (log.signed and leaf.proven):
        return "log"
    return "witness" if log.cosigned else "checkpoint"


def _records_without_leaf(session: Session) -> list[str]:
    logged = {leaf.sk for leaf in session.log.leaves}
    return [
        f"{event.sk} has no leaf"
        for event in session.readable_events()
        if (is_verdict(event) or event.text("Status") == "SESSION_INITIATED") and event.sk not in logged
    ]


def _result(session: Session, file_damage: list[str], unmet: list[str]) -> dict[str, Any]:
    verdict = session.verdict
    sealed = verdict is not None and has_seal(verdict)
    pruned = session.log.pruned if not (session.steps or session.events or session.parts) else None
    state = "expired" if is_expired(session) else "sealed" if sealed else "open"
    state = "pruned" if pruned is not None else state
    damage = file_damage + [
        found.text
        for found in session.damage
        if _counts(found, state) or (pruned is not None and _is_other_verdict(found, pruned.subject))
    ]
    if pruned is not None and session.log.signed and not pruned.proven:
        unmet = unmet + ["the leaf that says that it was pruned is newer than the checkpoint"]
    unmet = unmet + [f"cannot tell: {reason}" for reason in session.cannot_tell]
    naming = [anchor.kind for anchor in session.anchors if sealed and anchor.head == verdict.hash]
    if pruned is not None:
        naming = [_log_anchor(session.log, pruned)]
    outcome = _outcome(damage, state, unmet)
    head = verdict.hash if state == "sealed" and verdict is not None else None
    return {
        "session_id": session.id,
        "state": state,
        "head": pruned.subject if pruned is not None else head,
        "sound": outcome == "sound",
        "outcome": outcome,
        "word": _word(outcome, state, naming),
        "anchors": naming,
        "damage": damage,
        "unsealed": [event.sk for event in session.unsealed],
        "unmet": unmet,
    }


def _result_without_session(export: Export, head: str | None) -> dict[str, Any]:
    damage = export.line_damage + witness_damage(export, None)
    if head is not None:
        damage.append(f"the verdict is missing: {ANCHORS['head']} names its hash, {head}")
    outcome = _outcome(damage, "open", [])
    return {
        "session_id": None,
        "state": "open",
        "head": None,
        "sound": outcome == "sound",
        "outcome": outcome,
        "word": _word(outcome, "open", []),
        "anchors": [],
        "damage": damage,
        "unsealed": [],
        "unmet": [],
    }


def _counts(damage: Damage, state: str) -> bool:
    return state not in ("expired", "pruned") or damage.kind not in EXCUSED_BY_EXPIRY


def _is_other_verdict(damage: Damage, pruned_head: str) -> bool:
    return damage.kind == "verdict missing" and not damage.text.endswith(f", {pruned_head}")


def _outcome(damage: list[str], state: str, unmet: list[str]) -> str:
    if damage:
        return "damaged"
    if state == "expired" or unmet:
        return "not_provable"
    return "pruned" if state == "pruned" else "sound"


def _word(outcome: str, state: str, naming: list[str]) -> str:
    if outcome != "sound":
        return outcome.replace("_", " ")
    if state == "open":
        return "open"
    anchored = any(STRENGTH.index(kind) >= ANCHORED_FROM for kind in naming)
    return "sound" if anchored else "consistent"


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    try:
        raw = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
        keys = Path(options.key).read_text("utf-8").split("\n") if options.key else []
        keys = [line.strip() for line in keys if line.strip()]
        if options.key and not keys:
            raise Invalid(f"no key in {options.key}")
        result = verify(raw, _head(options.head), keys, options.witness, options.now)
    except (OSError, UnicodeDecodeError, NotAnExport, Invalid) as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_UNKNOWN
    result["session_id"] = result["session_id"] or options.file
    if options.json:
        print(json.dumps(result, ensure_ascii=False, separators=(",", ":")))
    else:
        print("\n".join([result["word"], *result["damage"], *result["unmet"]]))
    return EXIT_CODES[result["word"]]


def _head(text: str | None) -> str | None:
    """A head as hashes are written; the page gives no form for the option itself."""
    if text is not None and re.fullmatch(r"[0-9A-Fa-f]{64}", text) is None:
        raise Invalid(f"--head is `{text}`, expected 64 hexadecimal digits")
    return None if text is None else text.lower()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Verify an exported session.")
    parser.add_argument("file", metavar="FILE", help="the exported file, or - for stdin")
    parser.add_argument("--head", metavar="HASH", help="expected head, from outside the journal")
    parser.add_argument("--key", metavar="FILE", help="file with the public keys of the log")
    parser.add_argument("--witness", metavar="KEY", action="append", help="public key of a witness")
    parser.add_argument("--now", metavar="SECONDS", type=int, help="current time, since 1970")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
