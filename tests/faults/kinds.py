"""Kinds of damage: each function returns replacement contents for a file."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

DIGITS = b"9" * 5000
DEEP = 100_000
STRANGE: tuple[Any, ...] = (7, "text", None, [], {}, [[1]], {"a": {}}, True, -1.5)


def empty(content: bytes) -> Iterator[bytes]:
    yield b""


def truncated(content: bytes) -> Iterator[bytes]:
    for share in (0.1, 0.5, 0.9):
        yield content[: int(share * len(content))]
    yield content[:-1]


def random_bytes(content: bytes) -> Iterator[bytes]:
    """Return an empty file, and a file with everything but its magic number."""
    noise = np.random.default_rng(0).bytes(max(len(content), 100))
    yield noise
    yield content[:16] + noise[16:]


def bit_flip(content: bytes) -> Iterator[bytes]:
    rng = np.random.default_rng(1)
    middle = rng.integers(len(content) // 4, 3 * len(content) // 4, size=8)
    for position in [*middle, *rng.integers(len(content), size=8)]:
        changed = bytearray(content)
        changed[position] ^= 1 << int(rng.integers(8))
        yield bytes(changed)


def nul_bytes(content: bytes) -> Iterator[bytes]:
    """Return zeros for the whole file and for one block, as after a power failure of the disk."""
    yield bytes(len(content))
    third = len(content) // 3
    yield content[:third] + bytes(third) + content[2 * third :]
    yield content + bytes(512)


def wrong_type(content: bytes) -> Iterator[bytes]:
    """Return a JSON or YAML mapping with replaced values: the whole mapping, every entry, and every nested entry.

    A nested entry gets every third value, and the next entry others.
    """
    original = json.loads(content)
    for number, value in enumerate(STRANGE):
        yield json.dumps(value).encode()
        for key, inner in original.items():
            yield json.dumps({**original, key: value}).encode()
            if isinstance(inner, dict):
                for name in [*inner][number % 3 :: 3]:
                    yield json.dumps({**original, key: {**inner, name: value}}).encode()


def many_digits(content: bytes) -> Iterator[bytes]:
    """Return the text with a number of 5,000 digits in place of about every tenth number, and of the first."""
    digits = [i for i in range(1, len(content)) if content[i : i + 1].isdigit() and not content[i - 1 : i].isalnum()]
    for position in digits[:: max(len(digits) // 10, 1)]:
        yield content[:position] + DIGITS + content[position + 1 :]


def deep_nesting(content: bytes) -> Iterator[bytes]:
    yield b"[" * DEEP
    yield b"[" * DEEP + b"]" * DEEP
    yield b'{"a":' * DEEP + b"1" + b"}" * DEEP
    for key in json.loads(content):
        yield b"{" + json.dumps(key).encode() + b":" + b"[" * DEEP + b"]" * DEEP + b"}"


CONTENTS = {
    "empty file": empty,
    "truncated": truncated,
    "random bytes": random_bytes,
    "bit flip": bit_flip,
    "NUL bytes": nul_bytes,
    "wrong type": wrong_type,
    "5,000 digits": many_digits,
    "deep nesting": deep_nesting,
}
OF_MAPPINGS = ("wrong type", "deep nesting")
OF_TEXTS = ("5,000 digits",)


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("nowhere"))


def named_pipe(path: Path) -> None:
    """Create a pipe without a writer, which blocks every reader."""
    path.unlink()
    os.mkfifo(path)


REPLACEMENTS = {
    "a directory in its place": directory,
    "dangling link": dangling_link,
    "a pipe in its place": named_pipe,
}
