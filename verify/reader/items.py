"""Items, their canonical bytes and their hashes."""

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Iterable

from times import I64_MAX, I64_MIN

U32_MAX = 2**32 - 1
Attribute = tuple[str, str | int | bytes]

_DECIMAL = re.compile(r"0|-?[1-9][0-9]*")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


class NotAnItem(ValueError):
    """The JSON value is not an item."""


@dataclass(frozen=True, eq=False)
class Item:
    """A record: two keys and typed attributes (the keys are not among them)."""

    pk: str
    sk: str
    attributes: dict[str, Attribute]

    def has(self, name: str) -> bool:
        return name in self.attributes

    def text(self, name: str) -> str | None:
        return self._of_type(name, "S")

    def number(self, name: str) -> int | None:
        return self._of_type(name, "N")

    def data(self, name: str) -> bytes | None:
        return self._of_type(name, "B")

    def u32(self, name: str) -> int | None:
        value = self.number(name)
        return value if value is not None and 0 <= value <= U32_MAX else None

    def without(self, names: Iterable[str]) -> dict[str, Attribute]:
        """The attributes besides the keys and the given ones."""
        return {name: value for name, value in self.attributes.items() if name not in names}

    @cached_property
    def hash(self) -> str:
        return self.hash_with_sort_key(self.sk)

    def hash_with_sort_key(self, sk: str) -> str:
        attributes = self.without(["Hash"]) | {"PK": ("S", self.pk), "SK": ("S", sk)}
        return hashlib.sha256(canonical_bytes(attributes)).hexdigest()

    def _of_type(self, name: str, kind: str) -> Any:
        found = self.attributes.get(name)
        return found[1] if found is not None and found[0] == kind else None


def canonical_bytes(attributes: dict[str, Attribute]) -> bytes:
    """The bytes under a hash. Python compares texts as UTF-8 bytes compare."""
    parts = []
    for name in sorted(attributes):
        kind, value = attributes[name]
        raw_name, raw_value = name.encode(), _value_bytes(value)
        parts.append(b"%d:%s%s%d:%s" % (len(raw_name), raw_name, kind.encode(), len(raw_value), raw_value))
    return b"".join(parts)


def _value_bytes(value: str | int | bytes) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def item_from_json(value: Any) -> Item:
    """Reads the JSON form of an item, keys included."""
    if not isinstance(value, dict):
        raise NotAnItem("a record is not an object")
    attributes = {name: _attribute(name, typed) for name, typed in value.items()}
    keys = [attributes.pop(name, None) for name in ("PK", "SK")]
    if any(key is None or key[0] != "S" for key in keys):
        raise NotAnItem("a record has no key")
    return Item(keys[0][1], keys[1][1], attributes)


def _attribute(name: str, typed: Any) -> Attribute:
    if not isinstance(typed, dict) or len(typed) != 1:
        raise NotAnItem(f"`{name}` is not one typed value")
    [(kind, value)] = typed.items()
    if not isinstance(value, str):
        raise NotAnItem(f"the value of `{name}` is not a string")
    if kind == "S":
        return ("S", value)
    if kind == "N":
        return ("N", parse_decimal(value, name))
    if kind == "B":
        return ("B", _bytes(value, name))
    raise NotAnItem(f"`{name}` has no type of this format")


def parse_decimal(text: str, name: str) -> int:
    # 19 digits and a sign hold every i64; more digits need no conversion.
    if len(text) > 20 or _DECIMAL.fullmatch(text) is None:
        raise NotAnItem(f"`{name}` is not a decimal")
    number = int(text)
    if not I64_MIN <= number <= I64_MAX:
        raise NotAnItem(f"`{name}` is beyond the range of numbers")
    return number


def _bytes(text: str, name: str) -> bytes:
    raw = parse_base64(text)
    if raw is None:
        raise NotAnItem(f"`{name}` is not base64")
    return raw


def parse_base64(text: str) -> bytes | None:
    """Decodes padded standard base64 whose left-over bits are zero."""
    if _BASE64.fullmatch(text) is None:
        return None
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
    return raw if base64.b64encode(raw).decode() == text else None
