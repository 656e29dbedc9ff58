"""The changes of a commit, as a text diff."""

import difflib
from pathlib import Path

SHOWN = 60  # lines of a file that is new as a whole


def describe(old: bytes | None, new: bytes | Path | None, path: str) -> str:
    """Describe the change of one file: a unified diff of text, the size of anything else.

    Args:
        old: content before; None where there was no file.
        new: content after, a path for what is too large to be compared; None where the file is deleted.
        path: in the repository.
    """
    if new is None:
        return f"- {path}: deleted"
    if isinstance(new, Path):
        return f"+ {path}: {new.stat().st_size:,} bytes"
    before, after = _text(old), _text(new)
    if before is None or after is None:
        return f"{'~' if old is not None else '+'} {path}: {len(new):,} bytes, binary"
    lines = [*difflib.unified_diff(before.splitlines(), after.splitlines(), f"a/{path}", f"b/{path}", lineterm="")]
    if old is None:
        hidden = len(lines) - SHOWN
        lines = [f"+ {path}: new, {len(new):,} bytes", *lines[3 : SHOWN + 3]]
        lines += [f"  ... and {hidden - 3} more lines"] if hidden > 3 else []
    elif not lines:
        lines = [f"~ {path}: line ends only"]
    return "\n".join(printable(line) for line in lines)


def printable(text: str) -> str:
    """Return the text without signs that could steer a terminal."""
    return "".join(sign if sign.isprintable() or sign == "\t" else "�" for sign in text)


def _text(content: bytes | None) -> str | None:
    """Return content as text; empty for no file, None for what is not text."""
    try:
        text = (content or b"").decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
