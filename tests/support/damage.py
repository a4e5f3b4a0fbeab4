"""Ways to tamper with the objects of a store, and to draw them at random."""

from __future__ import annotations

import random
from collections.abc import Callable, MutableMapping

Objects = MutableMapping[str, bytes]
Damage = Callable[[Objects, str, int, str], None]
"""Tampers with the object of a key, somewhere, perhaps by means of another one."""


def flip(objects: Objects, key: str, at: int, key2: str) -> None:
    if data := bytearray(objects[key]):
        data[at % len(data)] ^= 1 + at % 255
    objects[key] = bytes(data)


def truncate(objects: Objects, key: str, at: int, key2: str) -> None:
    objects[key] = objects[key][: at % (len(objects[key]) + 1)]


def extend(objects: Objects, key: str, at: int, key2: str) -> None:
    objects[key] += bytes(1 + at % 100)


def delete(objects: Objects, key: str, at: int, key2: str) -> None:
    del objects[key]


def swap(objects: Objects, key: str, at: int, key2: str) -> None:
    objects[key], objects[key2] = objects[key2], objects[key]


def copy(objects: Objects, key: str, at: int, key2: str) -> None:
    objects[key] = objects[key2]


def cut_out(objects: Objects, key: str, at: int, key2: str) -> None:
    data = objects[key]
    at %= len(data) + 1
    objects[key] = data[:at] + data[at + 1 + at % 7 :]


def splice(objects: Objects, key: str, at: int, key2: str) -> None:
    data, other = objects[key], objects[key2]
    at %= len(data) + 1
    objects[key] = (data[:at] + other[at:])[: len(data)]


def zero(objects: Objects, key: str, at: int, key2: str) -> None:
    data = objects[key]
    at %= len(data) + 1
    objects[key] = data[:at] + bytes(min(64, len(data) - at)) + data[at + 64 :]


def garbage(objects: Objects, key: str, at: int, key2: str) -> None:
    objects[key] = [b"", b"{}", b"[]", b"null", b"\xff", b"CICADSEG", b'{"formatVersion": "x"}', b"[" * 50_000][at % 8]


DAMAGES: dict[str, Damage] = {
    function.__name__: function
    for function in (flip, truncate, extend, delete, swap, copy, cut_out, splice, zero, garbage)
}


def damage(objects: Objects, rng: random.Random) -> list[str]:
    """Tamper with one to three objects; returns what was done."""
    done = []
    for _ in range(rng.randint(1, 3)):
        keys = sorted(objects)
        name, key, key2 = rng.choice(sorted(DAMAGES)), rng.choice(keys), rng.choice(keys)
        DAMAGES[name](objects, key, rng.randrange(10**6), key2)
        done.append(f"{name} {key}")
    return done
