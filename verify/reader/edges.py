"""Writes files with one rare form each, for the comparison with a program."""

import copy
import json
import sys
from pathlib import Path

import exporting
from session_log import leaf_text

BASES = Path(__file__).parent / "bases"


def edges(raw: bytes) -> dict[str, bytes]:
    lines = raw.splitlines(keepends=True)
    parsed = exporting.parse_lines(raw)
    step = next(i for i, line in enumerate(parsed) if "STEP#" in json.dumps(line.get("record")))
    found = {
        "crlf": raw.replace(b"\n", b"\r\n"),
        "no-last-feed": raw[:-1],
        "empty": b"",
        "blank": b"\n",
        "empty-line": lines[0] + b"\n" + b"".join(lines[1:]),
        "line-after-witness": raw + lines[0],
        "empty-line-after-witness": raw + b"\n",
        "two-witnesses": raw + lines[-1],
        "bom": b"\xef\xbb\xbf" + raw,
        "spaces": b" \t" + raw,
        "form-feed": b"\x0c" + raw,
        "not-utf8": raw.replace(b"Timestamp", b"Times\xfftamp", 1),
        "duplicate-name": raw.replace(b'{"record":', b'{"hash":"","record":', 1),
        "duplicate-name-deep": raw.replace(b'"V":{"N":"1"}', b'"V":{"N":"1","N":"1"}', 1),
        "duplicate-escaped": raw.replace(b'"V":{"N":"1"}', b'"V":{"N":"1"},"\\u0056":{"N":"1"}', 1),
        "escaped-name": raw.replace(b'"V":', b'"\\u0056":', 1),
        "surrogate": raw.replace(b'"Writer":{"S":"', b'"Writer":{"S":"\\ud800', 1),
        "pair": raw.replace(b'"Writer":{"S":"', b'"Writer":{"S":"\\ud83d\\ude00', 1),
        "witness-minus-zero": raw.replace(b'"seq":', b'"seq":-0,"x":', 1),
        "witness-records-minus-zero": edit(raw, b'"records":', b"-0"),
        "witness-records-exponent": edit(raw, b'"records":', b"3e0"),
        "witness-records-point": edit(raw, b'"records":', b"3.0"),
        "witness-records-max": edit(raw, b'"records":', b"18446744073709551615"),
        "witness-records-over": edit(raw, b'"records":', b"18446744073709551616"),
        "witness-seq-over": edit(raw, b'"seq":', b"4294967296"),
        "witness-seq-zeros": edit(raw, b'"seq":', b"01"),
        "witness-huge": edit(raw, b'"records":', b"1e400"),
        "witness-head-empty": raw.replace(b'"head":"', b'"head":"","hea":"', 1),
        "nan": edit(raw, b'"records":', b"NaN"),
        "witness-first": lines[-1] + b"".join(lines[:-1]),
        "malformed-witness-then-good": b'{"witness":{}}\n' + raw,
        "malformed-witness-last": b"".join(lines[:-1]) + b'{"witness":{}}\n',
        "witness-null": b"".join(lines[:-1]) + b'{"witness":null}\n',
        "records-only-foreign": lines[0].replace(b"SESSION#0190", b"SESSIO#0190") + lines[-1],
        "no-session": lines[0].replace(b"SESSION#0190", b"SESSIO#0190"),
        "long-line": b'"' + b"a" * 4_194_304 + b'"\n' + raw,
        "longest-line": b'"' + b"a" * 4_194_301 + b'"\n' + raw,
        "deep-127": b"[" * 127 + b"]" * 127 + b"\n" + raw,
        "deep-128": b"[" * 128 + b"]" * 128 + b"\n" + raw,
    }
    for key in ("STEP#1", "STEP#+1", "STEP#0000000099", "STEP#00000000", "STEP#4294967295", "STEP#4294967296",
                "STEP#", "STEP#99999999", "EVENT#", "LEASE", "WAIT", "SESSION", "step#00000001"):
        found[f"key-{key.replace('#', '_')}"] = with_copy(parsed, step, key)
        found[f"key-twice-{key.replace('#', '_')}"] = with_copy(parsed, step, key, 2)
    return found


def principals(raw: bytes) -> dict[str, bytes]:
    """Forms of a principal in an answer, a note and an event."""
    found = {}
    values = (
        ["unknown", "unknown:", "os-user:a", "os-user:", "os-user:a b", "OS-USER:a", "root:a", "token:\u00fc", ""]
        + ["service:poller", "aws-arn:arn:aws:iam::1:user/a:b", "token:" + "a" * 2048, "token:" + "a" * 2049]
        + ["token:a\n", "token:\x7f"]
    )
    for key in ("STEP#00000004", "STEP#00000008", "STEP#00000001", "EVENT#2026-11-21T10:30:00.000000000Z"):
        for index, value in enumerate([{"S": value} for value in values] + [{"N": "1"}, {"B": "AAEC"}]):
            lines = exporting.parse_lines(raw)
            record = next(line["record"] for line in lines if line.get("record", {}).get("SK", {}).get("S") == key)
            record["Principal"] = value
            exporting.reseal(lines)
            found[f"{key[:13].replace('#', '_')}-{index}"] = exporting.dump_lines(lines)
    return found


def edit(raw: bytes, name: bytes, value: bytes) -> bytes:
    start = raw.rindex(name) + len(name)
    end = start
    while raw[end:end + 1].isdigit():
        end += 1
    return raw[:start] + value + raw[end:]


def with_copy(parsed: list, index: int, key: str, copies: int = 1) -> bytes:
    lines = copy.deepcopy(parsed)
    for _ in range(copies):
        added = copy.deepcopy(parsed[index])
        added["record"]["SK"] = {"S": key}
        exporting.fix_own_hash(added["record"])
        exporting.fix_line_hash(added)
        lines.append(added)
    exporting.sort_records(lines)
    lines[-1]["witness"]["records"] = len(lines) - 1
    return exporting.dump_lines(lines)


def decisions(raw: bytes) -> dict[str, bytes]:
    """Logs with holds, releases and prunes, without a checkpoint."""
    found = {}
    witness = exporting.parse_lines(raw)[-1]["witness"]
    session, records = witness["session_id"], [leaf["leaf"] for leaf in witness["log"]["leaves"]]
    head = json.loads(records[1])[4]

    def decision(action: str, subject: str, **changed: str) -> str:
        fields = {"at": "2026-11-24T00:00:00.000000000Z", "by": "os-user:alice", "reason": "ü \"7\""} | changed
        return leaf_text(["daybook retention 1", session, action, subject, *fields.values()])

    def add(name: str, leaves: list[str], kept: bool = False, order: int = 1) -> None:
        lines = exporting.parse_lines(raw)
        entries = [{"index": index, "leaf": leaf, "proof": None} for index, leaf in enumerate(leaves)]
        lines[-1]["witness"]["log"] = {"checkpoint": None, "leaves": entries[::order]}
        if not kept:
            lines = lines[-1:]
            lines[0]["witness"] |= {"records": 0, "head": None, "last_step": None}
        found[name] = exporting.dump_lines(lines)

    prune, hold, release = decision("prune", head), decision("hold", "case-7"), decision("release", "case-7")
    add("missing", records)
    add("pruned", [*records, prune])
    add("pruned-any-order", [*records, prune], order=-1)
    add("pruned-and-kept", [*records, prune], kept=True)
    add("pruned-and-written-again", [*records, prune, *records])
    add("pruned-twice", [*records, prune, *records, prune])
    add("pruned-again", [*records, prune, prune])
    add("pruned-before", [prune, *records])
    add("pruned-before-verdict", [records[0], prune])
    add("pruned-other-verdict", [*records, decision("prune", "0" * 64)])
    add("pruned-held", [*records, hold, prune])
    add("pruned-released", [*records, hold, release, prune])
    add("pruned-other-release", [*records, hold, decision("release", "case-8"), prune])
    add("held-and-kept", [*records, hold, release, hold], kept=True)
    for name, changed in {
        "at": "2026-11-24T00:00:00Z",
        "by": "alice",
        "reason": "x" * 501,
    }.items():
        add(f"unlike-{name}", [*records, decision("prune", head, **{name: changed})])
    add("unlike-action", [*records, decision("keep", head)])
    add("unlike-label", [*records, decision("hold", "a b")])
    add("unlike-spaces", [*records, prune.replace(",", ", ")])
    add("reason-500", [*records, decision("prune", head, reason="ü" * 500)])
    return found


def logs(raw: bytes) -> dict[str, bytes]:
    """Logs of another form, and logs that do not hold."""
    found = {}

    def add(name: str, change) -> None:
        lines = exporting.parse_lines(raw)
        change(lines[-1]["witness"]["log"])
        found[name] = exporting.dump_lines(lines)

    def leaf(name: str, position: int, /, **members) -> None:
        add(name, lambda log: log["leaves"][position].update(members))

    good = exporting.parse_lines(raw)[-1]["witness"]["log"]
    text = good["leaves"][1]["leaf"]
    add("no-checkpoint", lambda log: log.update(checkpoint=None))
    add("no-leaves", lambda log: log.update(leaves=[]))
    add("extra-member", lambda log: log.update(extra=1))
    add("checkpoint-number", lambda log: log.update(checkpoint=1))
    add("checkpoint-empty", lambda log: log.update(checkpoint=""))
    add("checkpoint-unsigned", lambda log: log.update(checkpoint=log["checkpoint"].split("\n\n")[0] + "\n"))
    add("checkpoint-no-lines", lambda log: log.update(checkpoint=log["checkpoint"].split("\n\n")[0] + "\n\n"))
    add("checkpoint-extension", lambda log: log.update(checkpoint=log["checkpoint"].replace("\n\n", "\nmore\n\n", 1)))
    add("checkpoint-size-zeros", lambda log: log.update(checkpoint=log["checkpoint"].replace("\n3\n", "\n03\n", 1)))
    add("checkpoint-size-4", lambda log: log.update(checkpoint=log["checkpoint"].replace("\n3\n", "\n4\n", 1)))
    add("checkpoint-empty-line-end", lambda log: log.update(checkpoint=log["checkpoint"] + "\n"))
    add("checkpoint-no-feed", lambda log: log.update(checkpoint=log["checkpoint"][:-1]))
    add("checkpoint-short-signature", lambda log: log.update(checkpoint=log["checkpoint"].rsplit(" ", 1)[0] + " AAAAAA==\n"))
    add("leaves-swapped", lambda log: log["leaves"].reverse())
    add("leaf-missing-verdict", lambda log: log["leaves"].pop())
    add("leaf-twice", lambda log: log["leaves"].append(log["leaves"][1]))
    leaf("proof-null", 1, proof=None)
    leaf("proof-empty", 1, proof=[])
    leaf("proof-not-base64", 1, proof=["?", good["leaves"][1]["proof"][1]])
    leaf("proof-short-hash", 1, proof=["AAAA", good["leaves"][1]["proof"][1]])
    leaf("proof-number", 1, proof=[1])
    leaf("proof-extra", 1, proof=good["leaves"][1]["proof"] * 2)
    leaf("index-3", 1, index=3)
    leaf("index-float", 1, index=1.0)
    leaf("index-negative", 1, index=-1)
    leaf("leaf-space", 1, leaf=text.replace(",", ", ", 1))
    leaf("leaf-other-session", 1, leaf=text.replace("0190a5c4", "0190a5c5"), proof=None)
    leaf("leaf-other-hash", 1, leaf=text.replace("059e", "159e"), proof=None)
    leaf("leaf-other-key", 1, leaf=text.replace("01.10", "01.11"), proof=None)
    leaf("leaf-other-status", 1, leaf=text.replace("SUCCEEDED", "FAILED"), proof=None)
    leaf("leaf-not-logged-status", 1, leaf=text.replace("SESSION_SUCCEEDED", "AGENT_LOST"), proof=None)
    leaf("leaf-expires-0", 1, leaf=text.replace("1803033000", "0"), proof=None)
    leaf("leaf-expires-past", 1, leaf=text.replace("1803033000", "17"), proof=None)
    leaf("leaf-expires-negative", 1, leaf=text.replace("1803033000", "-17"), proof=None)
    leaf("leaf-expires-text", 1, leaf=text.replace("1803033000", '"17"'), proof=None)
    leaf("leaf-text", 1, leaf="text", proof=None)
    return found


def shards(raw: bytes) -> dict[str, bytes]:
    """Logs with shards of another form, and such that do not hold."""
    found = {}

    def add(name: str, change) -> None:
        lines = exporting.parse_lines(raw)
        change(lines[-1]["witness"]["log"]["leaves"][1])
        found[name] = exporting.dump_lines(lines)

    def head(name: str, **members) -> None:
        add(f"head-{name}", lambda leaf: leaf["shard"].update(members))

    good = exporting.parse_lines(raw)[-1]["witness"]["log"]["leaves"][1]
    text = good["shard"]["leaf"]
    add("null", lambda leaf: leaf.update(shard=None))
    add("removed", lambda leaf: leaf.pop("shard"))
    add("list", lambda leaf: leaf.update(shard=[]))
    add("no-proof", lambda leaf: leaf.update(proof=None))
    add("no-proof-nor-shard", lambda leaf: (leaf.update(proof=None), leaf.pop("shard")))
    add("nested", lambda leaf: leaf["shard"].update(shard=dict(leaf["shard"])))
    add("swapped", lambda leaf: leaf.update(shard={**good["shard"], "leaf": good["leaf"]}))
    add("index-0", lambda leaf: leaf.update(index=0))
    add("index-huge", lambda leaf: leaf.update(index=2**64 - 1))
    head("proof-null", proof=None)
    head("proof-empty", proof=[])
    head("proof-extra", proof=good["shard"]["proof"] * 2)
    head("index-0", index=0)
    head("index-2", index=2)
    head("index-huge", index=2**64)
    head("index-float", index=1.0)
    head("extra", extra=1)
    head("text", leaf="text")
    head("space", leaf=text.replace(",", ", ", 1))
    head("capital", leaf=text.replace('"7"', '"A"'))
    head("long-shard", leaf=text.replace('"7"', '"07"'))
    head("number-shard", leaf=text.replace('"7"', "7"))
    head("other-shard", leaf=text.replace('"7"', '"8"'))
    head("other-form", leaf=text.replace("shard 1", "shard 2"))
    for size in ("0", "2", "4", "-3", "3.0", "03", '"3"', "9223372036854775808", "18446744073709551616"):
        head(f"size-{size.strip(chr(34))}{'-text' if size[0] == chr(34) else ''}", leaf=text.replace(",3,", f",{size},"))
    head("root-short", leaf=leaf_text([*json.loads(text)[:3], "AAAA"]))
    head("root-number", leaf=leaf_text([*json.loads(text)[:3], 7]))
    head("five", leaf=leaf_text([*json.loads(text), 7]))
    return found


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for base in ("vector", "session"):
        for name, contents in edges((BASES / f"{base}.jsonl").read_bytes()).items():
            (folder / f"{base}-{name}.jsonl").write_bytes(contents)
    for name, contents in principals((BASES / "session.jsonl").read_bytes()).items():
        (folder / f"principal-{name}.jsonl").write_bytes(contents)
    for name, contents in decisions((BASES / "with_log.jsonl").read_bytes()).items():
        (folder / f"decision-{name}.jsonl").write_bytes(contents)
    for name, contents in logs((BASES / "with_log.jsonl").read_bytes()).items():
        (folder / f"log-{name}.jsonl").write_bytes(contents)
    for name, contents in shards((BASES / "with_shards.jsonl").read_bytes()).items():
        (folder / f"shard-{name}.jsonl").write_bytes(contents)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
