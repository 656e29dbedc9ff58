"""Format results as short text and HTML tables for printing and notebooks."""

import textwrap
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from cardiobench.results import formatting
from cardiobench.results.score_result import ScoreResult

WIDTH = 110
"""Width of text lines; tables may be wider."""
LIST_COLUMNS = ("task", "model", "protocol", "metric", "score", "95 % CI", "floor", "verdict", "n")


class PrintedTable(NamedTuple):
    """Table with title, column names and rows of cells."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


class ScoreResults(list[ScoreResult]):
    """List of results that prints as a table with one row each."""

    def __str__(self) -> str:
        rows = [
            dict(zip(formatting.COLUMNS, formatting.row(result), strict=True)) for result in formatting.tell_apart(self)
        ]
        return text_table(LIST_COLUMNS, [[row[name] for name in LIST_COLUMNS] for row in rows])

    __repr__ = __str__


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table with aligned columns separated by two spaces."""
    lines = [list(map(str, cells)) for cells in (columns, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip() for cells in lines
    )


def html_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = (), title: str = ""
) -> str:
    """Format a table as escaped HTML with a title above and sentences below."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>" for cells in rows)
    above = f"<p><b>{escape(title)}</b></p>" if title else ""
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"{above}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def result_text(result: ScoreResult) -> str:
    """Format a result as text: score, floor, verdict, other metrics, number of patients and warnings."""
    title, columns, rows = _result_table(result)
    return "\n".join([title, text_table(columns, rows), *map(_wrapped, _sentences(result))])


def result_html(result: ScoreResult) -> str:
    """Format a result as HTML with the same content as its text."""
    title, columns, rows = _result_table(result)
    return html_table(columns, rows, _sentences(result), title)


def _result_table(result: ScoreResult) -> PrintedTable:
    score = result.score
    return PrintedTable(
        f"{result.task}, protocol {result.label}",
        (formatting.metric_name(result), "score", "95 % CI"),
        [
            (result.model["name"], formatting.number(score.value, result), formatting.interval(score, result)),
            ("floor", formatting.floor(result), ""),
        ],
    )


def _sentences(result: ScoreResult) -> list[str]:
    score = result.score
    count = f"n = {score.n}" + (f" ({score.n_patients} patients)" if score.n_patients != score.n else " patients")
    coverage = f"coverage {formatting.coverage(result)}"
    others = ", ".join(
        _other(key, estimate.value, result) for key, estimate in result.overall.items() if key != result.metric
    )
    return [
        f"verdict: {formatting.verdict(result)}" + (f": {result.verdict.sentence}" if result.verdict.sentence else ""),
        *([bounds] if (bounds := formatting.bounds(result)) else []),
        ", ".join((count, coverage, *formatting.flags(result))),
        *([f"other metrics: {others}"] if others else []),
        *(f"! {warning}" for warning in result.warnings if result.verdict.sentence not in warning),
    ]


def result_repr(result: ScoreResult) -> str:
    """Format a result in one line."""
    score = formatting.number(result.score.value, result)
    ends = formatting.interval(result.score, result)
    name = f"{result.task}, {result.model['name']}, {result.label}"
    told = f"floor {formatting.floor(result)}, {formatting.verdict(result)}"
    return f"<{type(result).__name__} {name}: {formatting.metric_name(result)} {score} [{ends}], {told}>"


def _other(key: str, value: float, result: ScoreResult) -> str:
    number = result.number(key)
    return f"{key} {number.with_unit(value, result.unit, number.decimals(result.unit))}"


def _wrapped(sentence: str) -> str:
    return textwrap.fill(sentence, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
