"""Try a tokenizer in a process of its own with a memory limit, before this process uses it.

A `tokenizer.json` is a program: its normalizers can make texts any length, and the library then ends the process without
an exception. This file runs as a script in that process and imports nothing of this package there.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

MEMORY = 2 << 30
"""Bytes of address space of the process, besides those that depend on the size of the tokenizer."""
BYTES_PER_BYTE = 40
"""Memory that a tokenizer needs per byte of its JSON; that of Gemma needs 25."""
SECONDS = 120
MOST_TOKENS = 1_000_000
"""Maximum number of tokens of all texts together before they are truncated."""
SAMPLES = ("", "An echocardiogram, 65 % ejection fraction.", "NORMAL ECG", "".join(map(chr, range(32, 1024))))


def trial_error(content: str, texts: Sequence[str] = SAMPLES) -> str:
    """Return why a tokenizer cannot be used for texts; empty if it can.

    Args:
        content: `tokenizer.json`.
        texts: Texts to tokenize.
    """
    return _trial_error(content, tuple(texts))


@lru_cache(maxsize=256)
def _trial_error(content: str, texts: tuple[str, ...]) -> str:
    # Without -P, Python would import from the folder of this script, and with -I not from the user's site-packages.
    command = [sys.executable, "-P", __file__]
    environment = {name: value for name, value in os.environ.items() if "TOKEN" not in name.upper()}
    environment |= {"TOKENIZERS_PARALLELISM": "false"}
    question = json.dumps({"tokenizer": content, "texts": texts}).encode()
    try:
        done = subprocess.run(
            command, input=question, capture_output=True, timeout=SECONDS, check=False, env=environment
        )
    except subprocess.TimeoutExpired:
        return f"it needs more than {SECONDS} seconds for {len(texts)} texts"
    if done.returncode == 0:
        return ""
    if done.returncode == 1:
        return done.stderr.decode("utf-8", "replace").strip()[:300] or "it cannot be read"
    return "its process was ended, as for a tokenizer that makes texts longer than memory allows"


def backend_of(tokenizer: Any) -> str:
    """Return the JSON of a tokenizer of transformers; empty for one in Python, which has no normalizers of its own."""
    backend: Any = getattr(tokenizer, "backend_tokenizer", None)
    return str(backend.to_str()) if hasattr(backend, "to_str") else ""


def _limit_memory(size: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limit; the process is still not ours.
        return
    limit = MEMORY + BYTES_PER_BYTE * size
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _main() -> str:
    """Return why the tokenizer on standard input cannot be used; empty if it can."""
    from tokenizers import Tokenizer

    content = sys.stdin.buffer.read()
    _limit_memory(len(content))
    question = json.loads(content)
    try:
        tokenizer = Tokenizer.from_str(question["tokenizer"])
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokens = sum(len(tokenizer.encode(text).ids) for text in question["texts"])
    except Exception as error:  # noqa: BLE001 - the library raises a bare Exception
        return str(error)
    return f"it makes {tokens:,} tokens of {len(question['texts'])} texts" if tokens > MOST_TOKENS else ""


if __name__ == "__main__":
    sys.exit(_main() or 0)  # A text goes to standard error, with exit code 1.
