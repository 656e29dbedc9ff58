"""Embed SVG figures in HTML: compact, in page colours and with unique ids."""

import re

from cardiobench.report.plots.style import FLOOR, GRID, INK, LINES, MODEL, MUTED, PAPER, PUBLISHED

_CSS_COLOURS = {
    **{colour: f"var(--line-{number})" for number, colour in enumerate(LINES)},
    INK: "currentColor",
    MUTED: "var(--muted)",
    GRID: "var(--line)",
    MODEL: "var(--model)",
    FLOOR: "var(--floor)",
    PUBLISHED: "var(--published)",
    PAPER: "var(--paper)",
}
_TAG = re.compile(r"<[^/>][^>]*>")  # A closing tag has no attributes.
# Ids except referenced, salted ones; colours; numbers.
_LONG = re.compile(r' id="(?![mpC][0-9a-f_]*[0-9a-f]{10}")[^"]*"|#[0-9a-f]{6}\b|-?\d+\.\d{2,}')


def inline_svg(svg: str) -> str:
    """Return a figure from `save_figure` as an HTML element; matplotlib has escaped its texts."""
    head = re.search(r'<svg[^>]*viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>', svg)
    if head is None:
        raise ValueError("no <svg> element with a viewBox from 0 0 in the figure")
    width, height = head.groups()
    body = re.sub(r"<!--.*?-->", "", svg[head.end() :], flags=re.DOTALL)
    body = _TAG.sub(lambda tag: _LONG.sub(_shorter, tag[0]), body)
    body = re.sub(r"\s*\n\s*", " ", body)
    pixels = round(float(width) * 4 / 3)  # Convert points to CSS pixels.
    return f'<svg viewBox="0 0 {width} {height}" width="{pixels}" aria-hidden="true">{body}'


def _shorter(match: re.Match[str]) -> str:
    """Return no id, a colour as CSS variable, or a number with one decimal, which is precise enough in points."""
    text = match[0]
    if text[0] == "#":
        return _CSS_COLOURS.get(text, text)
    return "" if text[0] == " " else f"{float(text):.1f}".removesuffix(".0")
