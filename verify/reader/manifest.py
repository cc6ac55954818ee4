"""The manifest of a verdict: the events that it seals, and their hashes."""

from typing import Callable

import strict_json
from payloads import Parts, Payload, Undecodable, decode

Manifest = dict[str, str]


def decode_manifest(payload: Payload, stored_parts: Callable[[Parts], bytes]) -> Manifest:
    """Sort key to hash, in the order of the manifest; raises Undecodable or CannotTell."""
    try:
        entries = strict_json.parse(decode(payload, stored_parts) or "")
    except strict_json.NotJson as error:
        raise Undecodable(f"it is not JSON: {error}") from None
    if not isinstance(entries, list):
        raise Undecodable("it is not an array")
    return dict(_entry(entry) for entry in entries)


def _entry(entry: object) -> tuple[str, str]:
    if not isinstance(entry, list) or len(entry) < 2:
        raise Undecodable("an entry is not an array of a sort key and a hash")
    if not isinstance(entry[0], str) or not isinstance(entry[1], str):
        raise Undecodable("an entry is not an array of a sort key and a hash")
    return (entry[0], entry[1])
