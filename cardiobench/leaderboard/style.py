"""Look of the app: the fonts of the machine, and the heat colours of the report."""

import re
from pathlib import Path
from typing import Any

import cardiobench.report.page
from cardiobench.leaderboard.grid import SHADES
from cardiobench.report.overview import STEPS

NAMES = (*SHADES, "--cell", "--model", "--floor", "--muted")
PAGE = Path(cardiobench.report.page.__file__).parent / "templates" / "page.css"
CSS = """
.scale{display:flex;flex-wrap:wrap;gap:2px;font-size:.8rem}
.scale span{padding:.1rem .6rem;color:var(--cell);border-radius:3px}
"""


def options() -> dict[str, Any]:
    """Return the arguments of `launch` that decide how the app looks."""
    return {"theme": theme(), "css": colours() + CSS}


def theme() -> Any:
    """Return a theme with the fonts of the machine: none is fetched."""
    import gradio as gr

    fonts = ["system-ui", "sans-serif"]  # Also used by tables, whose font is called monospace.
    return gr.themes.Default(font=fonts, font_mono=fonts)


def colours() -> str:
    """Return the colours of the report's style sheet as CSS of the app, whose dark mode is a class."""
    light, dark = re.findall(r":root\{([^}]*)\}", PAGE.read_text(encoding="utf-8"))[:2]
    return f":root{{{_chosen(light)}}}.dark{{{_chosen(dark)}}}"


def _chosen(rules: str) -> str:
    found = (rule.strip() for rule in rules.split(";"))
    return ";".join(rule for rule in found if rule.partition(":")[0] in NAMES)


def scale() -> str:
    """Return the scale of the heat colours as HTML."""
    ends = [f"{100 * step:+.0f} %".replace("-", "−") for step in STEPS]
    texts = [f"below {ends[0]}", *(f"from {end}" for end in ends)]
    shades = (f'<span style="background:var({name})">{text}</span>' for name, text in zip(SHADES, texts, strict=True))
    return f'<div class="scale">{"".join(shades)}</div>'
