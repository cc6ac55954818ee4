"""Payloads: the three forms in which a record states its JSON text."""

import hashlib
from dataclasses import dataclass
from typing import Callable

from items import Item

PAYLOAD_BYTES_MAX = 4_194_304
PAYLOAD_ATTRIBUTES = ("Payload", "PayloadEncoding", "PayloadBytes", "PayloadSha256", "PayloadParts")


class Malformed(ValueError):
    """The record's payload breaks a rule of its form."""


class Undecodable(ValueError):
    """The payload cannot be decoded."""


class CannotTell(Exception):
    """This reader lacks what decoding the payload needs."""


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Compressed:
    stored: bytes
    bytes: int


@dataclass(frozen=True)
class Parts:
    sha256: str
    bytes: int
    count: int
    is_encrypted: bool = False


@dataclass(frozen=True)
class Encrypted:
    """In its record, for readers that have the session's key. This one never has."""


Payload = Text | Compressed | Parts | Encrypted | None


def payload_of(item: Item) -> Payload:
    """The form of a record's payload; raises Malformed."""
    if item.has("Payload"):
        return _payload_in_record(item)
    sha256 = item.text("PayloadSha256")
    if sha256 is None:
        return Encrypted() if is_encrypted(item) else None
    size, count = item.u32("PayloadBytes"), item.u32("PayloadParts")
    encoding = item.text("PayloadEncoding")
    if encoding not in ("zstd", "encrypted-zstd") or size is None or count is None:
        raise Malformed("its payload in parts is malformed")
    return Parts(sha256, size, count, encoding == "encrypted-zstd")


def is_encrypted(item: Item) -> bool:
    return item.data("Encrypted") is not None


def _payload_in_record(item: Item) -> Payload:
    kind, value = item.attributes["Payload"]
    if kind == "S":
        if item.has("PayloadEncoding"):
            raise Malformed("its payload is text and has an encoding")
        return Text(str(value))
    size = item.u32("PayloadBytes")
    if kind != "B" or item.text("PayloadEncoding") != "zstd" or size is None:
        raise Malformed("its compressed payload is malformed")
    return Compressed(bytes(value), size)


def malformed(item: Item) -> bool:
    try:
        payload_of(item)
    except Malformed:
        return True
    return False


def decode(payload: Payload, stored_parts: Callable[[Parts], bytes]) -> str | None:
    """The JSON text of a payload; raises Undecodable or CannotTell."""
    if payload is None:
        return None
    if isinstance(payload, Text):
        return payload.text
    if isinstance(payload, Encrypted):
        raise Undecodable("it is encrypted")
    if payload.bytes > PAYLOAD_BYTES_MAX:
        raise Undecodable("it claims too many bytes")
    if isinstance(payload, Compressed):
        return _decompress(payload.stored, payload.bytes)
    stored = stored_parts(payload)
    if hashlib.sha256(stored).hexdigest() != payload.sha256:
        raise Undecodable("its parts have another hash")
    if payload.is_encrypted:
        raise Undecodable("it is encrypted")
    return _decompress(stored, payload.bytes)


def _decompress(stored: bytes, size: int) -> str:
    try:
        raw = _zstd(stored, size)
        if len(raw) != size:
            raise Undecodable("it has another number of bytes than stated")
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Undecodable("it is not UTF-8") from None


def _zstd(stored: bytes, size: int) -> bytes:
    """Decompresses with the decoder of Python 3.14 or the package `zstandard`."""
    try:
        from compression import zstd
    except ImportError:
        return _zstd_of_package(stored, size)
    try:
        decoder = zstd.ZstdDecompressor()
        raw = decoder.decompress(stored, max_length=size + 1)
    except zstd.ZstdError as error:
        raise Undecodable(str(error)) from None
    if not decoder.eof or decoder.unused_data:
        raise Undecodable("it is not one Zstandard frame")
    return raw


def _zstd_of_package(stored: bytes, size: int) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise CannotTell("no Zstandard decoder can be imported") from None
    try:
        decoder = zstandard.ZstdDecompressor().decompressobj()
        raw = decoder.decompress(stored)
    except zstandard.ZstdError as error:
        raise Undecodable(str(error)) from None
    if not decoder.eof or decoder.unused_data:
        raise Undecodable("it is not one Zstandard frame")
    return raw
