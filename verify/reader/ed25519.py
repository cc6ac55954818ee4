"""Verification of Ed25519 signatures, after RFC 8032, section 5.1."""

import hashlib

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
SQRT_OF_MINUS_1 = pow(2, (P - 1) // 4, P)

# Extended homogeneous coordinates: x = X/Z, y = Y/Z, x * y = T/Z.
Point = tuple[int, int, int, int]


def add(a: Point, b: Point) -> Point:
    e1 = (a[1] - a[0]) * (b[1] - b[0]) % P
    e2 = (a[1] + a[0]) * (b[1] + b[0]) % P
    e3 = 2 * a[3] * b[3] * D % P
    e4 = 2 * a[2] * b[2] % P
    e, f, g, h = e2 - e1, e4 - e3, e4 + e3, e2 + e1
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def multiply(scalar: int, point: Point) -> Point:
    result: Point = (0, 1, 1, 0)
    while scalar > 0:
        if scalar & 1:
            result = add(result, point)
        point = add(point, point)
        scalar >>= 1
    return result


def _equal(a: Point, b: Point) -> bool:
    return (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0


def _x_of(y: int, sign: int) -> int | None:
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    if square == 0:
        return None if sign else 0
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P != 0:
        x = x * SQRT_OF_MINUS_1 % P
    if (x * x - square) % P != 0:
        return None
    return P - x if x & 1 != sign else x


def _decode_point(raw: bytes) -> Point | None:
    number = int.from_bytes(raw, "little")
    y = number & (2**255 - 1)
    x = _x_of(y, number >> 255)
    return None if x is None else (x, y, 1, x * y % P)


_BASE_Y = 4 * pow(5, P - 2, P) % P
_BASE_X = _x_of(_BASE_Y, 0) or 0
BASE: Point = (_BASE_X, _BASE_Y, 1, _BASE_X * _BASE_Y % P)


def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the signature of the message is by the key; without the cofactor."""
    if len(public_key) != 32 or len(signature) != 64:
        return False
    key, commitment = _decode_point(public_key), _decode_point(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if key is None or commitment is None or scalar >= L:
        return False
    digest = hashlib.sha512(signature[:32] + public_key + message).digest()
    challenge = int.from_bytes(digest, "little") % L
    return _equal(multiply(scalar, BASE), add(commitment, multiply(challenge, key)))
