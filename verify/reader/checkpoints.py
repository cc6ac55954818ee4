"""Checkpoints: signed notes with the size and the root of a log."""

import hashlib
import re
from dataclasses import dataclass

import ed25519
from items import parse_base64

ED25519_KEY = 0x01
COSIGNATURE_KEY = 0x04


class Invalid(ValueError):
    """A note, key or proof is invalid."""


@dataclass(frozen=True)
class Key:
    name: str
    id: bytes
    public_key: bytes


@dataclass(frozen=True)
class Signature:
    name: str
    key_id: bytes
    signature: bytes


@dataclass(frozen=True)
class Checkpoint:
    text: str
    origin: str
    size: int
    root: bytes
    signatures: list[Signature]


def parse_key(text: str, algorithm: int) -> Key:
    """Reads `NAME+ID+KEY`."""
    match = re.fullmatch(r"([^+\s]+)\+([0-9a-f]{8})\+(.+)", text)
    raw = parse_base64(match[3]) if match else None
    if match is None or raw is None or len(raw) != 33 or raw[0] != algorithm:
        raise Invalid(f"invalid public key `{text}`")
    key = Key(match[1], bytes.fromhex(match[2]), raw[1:])
    digest = hashlib.sha256(key.name.encode() + b"\n" + raw).digest()
    if digest[:4] != key.id:
        raise Invalid(f"public key `{text}` has another id")
    return key


def parse_checkpoint(note: str) -> Checkpoint:
    """Reads a signed note whose text has the three lines of a checkpoint, and extensions."""
    text, separator, rest = note.rpartition("\n\n")
    text += "\n"
    lines = text.split("\n")
    if not separator or not rest.endswith("\n") or len(lines) < 4 or "" in lines[:-1]:
        raise Invalid("the checkpoint is not a signed note of at least three lines")
    origin, size, root_text, *_extensions = lines
    root = parse_base64(root_text)
    if not origin or not re.fullmatch(r"0|[1-9][0-9]{0,19}", size):
        raise Invalid("the checkpoint has no origin and size")
    if root is None or len(root) != 32:
        raise Invalid("the checkpoint has no root")
    signatures = [_signature(line) for line in rest[:-1].split("\n")]
    return Checkpoint(text, origin, int(size), root, signatures)


def _signature(line: str) -> Signature:
    match = re.fullmatch(r"\u2014 ([^+\s]+) (\S+)", line)
    raw = parse_base64(match[2]) if match else None
    if match is None or raw is None or len(raw) < 5:
        raise Invalid("the checkpoint has a malformed signature line")
    return Signature(match[1], raw[:4], raw[4:])


def check_signatures(checkpoint: Checkpoint, keys: list[Key]) -> None:
    """Raises Invalid unless one of the keys signed the checkpoint."""
    own = [key for key in keys if key.name == checkpoint.origin]
    # A list, not a generator: every signature line must be checked.
    signed = [_signed_by(checkpoint, key) for key in keys]
    if not any(found for key, found in zip(keys, signed) if key in own):
        raise Invalid("no given key signed the checkpoint")


def _signed_by(checkpoint: Checkpoint, key: Key) -> bool:
    message = checkpoint.text.encode()
    lines = _lines_of(checkpoint, key)
    for line in lines:
        if not ed25519.verify(key.public_key, message, line.signature):
            raise Invalid(f"the signature of `{key.name}` is invalid")
    return bool(lines)


def cosigned_by(checkpoint: Checkpoint, witness: Key) -> bool:
    """Whether a witness cosigned the checkpoint. An invalid line counts as none."""
    lines = _lines_of(checkpoint, witness)
    return any(_cosignature_holds(checkpoint, witness, line.signature) for line in lines)


def _cosignature_holds(checkpoint: Checkpoint, witness: Key, signature: bytes) -> bool:
    if len(signature) != 8 + 64:
        return False
    seconds = int.from_bytes(signature[:8], "big")
    message = f"cosignature/v1\ntime {seconds}\n{checkpoint.text}".encode()
    return ed25519.verify(witness.public_key, message, signature[8:])


def _lines_of(checkpoint: Checkpoint, key: Key) -> list[Signature]:
    return [
        line
        for line in checkpoint.signatures
        if line.name == key.name and line.key_id == key.id
    ]


def leaf_hash(contents: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + contents).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def inclusion_holds(index: int, size: int, leaf: bytes, proof: list[bytes], root: bytes) -> bool:
    """RFC 9162, section 2.1.3.2."""
    if index >= size:
        return False
    node, last, found = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return False
        if node & 1 or node == last:
            found = node_hash(sibling, found)
            while not node & 1 and node != 0:
                node, last = node >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        node, last = node >> 1, last >> 1
    return last == 0 and found == root


def consistency_holds(
    old_size: int, old_root: bytes, new_size: int, new_root: bytes, proof: list[bytes]
) -> bool:
    """RFC 9162, section 2.1.4.2; a log of the same size needs the same root and no proof."""
    if old_size == new_size:
        return not proof and old_root == new_root
    if not 0 < old_size < new_size or not proof:
        return False
    path = ([old_root] if old_size & (old_size - 1) == 0 else []) + proof
    node, last = old_size - 1, new_size - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    old, new = path[0], path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if node & 1 or node == last:
            old, new = node_hash(sibling, old), node_hash(sibling, new)
            while not node & 1 and node != 0:
                node, last = node >> 1, last >> 1
        else:
            new = node_hash(new, sibling)
        node, last = node >> 1, last >> 1
    return last == 0 and old == old_root and new == new_root
