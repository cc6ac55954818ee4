"""Times of the record format: nanoseconds since 1970-01-01T00:00:00Z."""

import datetime
import re

SECOND_NS = 1_000_000_000
I64_MIN, I64_MAX = -(2**63), 2**63 - 1

_EPOCH = datetime.date(1970, 1, 1)
_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]"
    r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+\-\u2212])([0-9]{2}):([0-9]{2}))"
)


def parse_time(text: str) -> int | None:
    """The instant of a text, or None if the text is not a time."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[i]) for i in range(1, 7))
    if hour > 23 or minute > 59 or second > 60:
        return None
    try:
        days = (datetime.date(year, month, day) - _EPOCH).days
    except ValueError:
        return None
    offset_s = _offset(match[8], match[9], match[10])
    if offset_s is None:
        return None
    fraction_ns = int((match[7] or "")[:9].ljust(9, "0"))
    # Second 60 is second 59 plus one second: the sum below says the same.
    seconds = days * 86400 + hour * 3600 + minute * 60 + second - offset_s
    instant = seconds * SECOND_NS + fraction_ns
    return instant if I64_MIN <= instant <= I64_MAX else None


def _offset(sign: str | None, hours: str | None, minutes: str | None) -> int | None:
    """Seconds that an offset is ahead of UTC."""
    if sign is None or hours is None or minutes is None:
        return 0
    if int(hours) > 23 or int(minutes) > 59:
        return None
    seconds = int(hours) * 3600 + int(minutes) * 60
    return seconds if sign == "+" else -seconds


def nine_digits(instant: int) -> str:
    """The form in which a writer writes an instant."""
    seconds, fraction_ns = divmod(instant, SECOND_NS)
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{fraction_ns:09d}Z"
