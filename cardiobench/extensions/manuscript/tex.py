"""Write LaTeX that compiles with any name in it."""

import re
from collections.abc import Callable

from cardiobench.report.grid import latex_text
from cardiobench.results.formatting import markdown_text

_LIST = re.compile(r"[-+.\de]+(?:/[-+.\de]+){3,}")
LAST_LATIN = 0x17F
"""Last letter of Latin Extended-A; pdfLaTeX has no glyphs for most letters beyond."""
LETTERS = {"‘": "`", "’": "'", "“": "``", "”": "''", "—": "---", "•": "\\textbullet{}", "−": "$-$"}
PREAMBLE = r"""% Letters beyond Latin are printed as their code by pdfLaTeX, and as they are by XeLaTeX and LuaLaTeX.
\DeclareRobustCommand{\foreignletter}[2]{\ifdefined\pdfoutput[U+#1]\else#2\fi}
"""


def tex(text: str) -> str:
    r"""Escape text for LaTeX, with letters that pdfLaTeX does not know as `\foreignletter{code}{letter}`.

    Lists such as `0.01/0.1/1/10` may be broken after each number, because LaTeX breaks lines at spaces only.
    """
    escaped = "".join(_letter(sign) for sign in latex_text(text))
    return _LIST.sub(lambda found: found[0].replace("/", "/\\allowbreak{}"), escaped)


def _letter(sign: str) -> str:
    if sign in LETTERS:
        return LETTERS[sign]
    known = ord(sign) <= LAST_LATIN and not 0x7F <= ord(sign) < 0xA1
    return sign if known else f"\\foreignletter{{{ord(sign):04X}}}{{{sign}}}"


def label(kind: str, *names: str) -> str:
    """Return a label such as `tab:ptb_xl/cd-probe`; other signs than letters, digits and `_/.+=-` become their code."""
    plain = re.sub(r"[^A-Za-z0-9_/.+=-]", lambda sign: f"x{ord(sign[0]):x}", "-".join(names))
    return f"{kind}:{plain}"


def cite(text: str) -> str:
    r"""Escape text for LaTeX and turn references such as `[@ptb_xl]` into `\cite{ptb_xl}`."""
    return "".join(f"\\cite{{{part[2:-1]}}}" if part.startswith("[@") else _spaced(part, tex) for part in _parts(text))


def cite_markdown(text: str) -> str:
    """Escape text for Markdown and leave references such as `[@ptb_xl]`, which Pandoc reads."""
    return "".join(part if part.startswith("[@") else _spaced(part, markdown_text) for part in _parts(text))


def _parts(text: str) -> list[str]:
    return re.split(r"(\[@[A-Za-z0-9_]+\])", text)


def _spaced(part: str, escape: Callable[[str], str]) -> str:
    """Escape a part of a sentence and keep the spaces at its ends."""
    before, after = (" " if part[:1].isspace() else ""), (" " if len(part) > 1 and part[-1:].isspace() else "")
    return before + escape(part) + after
