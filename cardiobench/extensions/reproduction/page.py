"""Write a page that compares both profiles and explains their differences."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cardiobench.core.io import write_text
from cardiobench.extensions.reproduction.profiles import BY_PATIENT, PAPER
from cardiobench.extensions.reproduction.reproduce import Tables
from cardiobench.extensions.reproduction.table_specs import TABLE_SPECS
from cardiobench.results.formatting import markdown_text

PAGE = "side_by_side.md"

HEAD = """\
# The published evaluation, reproduced and corrected

Left: the profile `paper`, which reproduces the tables of the published evaluator (arXiv:2510.00520, code at commit e0bc185) to
the last digit. Right: the same predictions and labels under the default profile. Intervals are 95 % percentile
intervals of 1000 resamples.

## Why they differ

| rule | paper | default | effect |
|---|---|---|---|
| unit of resampling | rows (seed 42) | patients, with all their rows (seed 0) | recordings of one patient resemble each other: where a patient has several rows, intervals by row are mostly too narrow, and too wide where those rows balance each other, such as one of each view |
| rounding | every resample to 2 decimals (classification 4), then mean and quantiles, then again | none; this page rounds once, for print | intervals in cm (LVH) stand on a grid of 0.01 cm |
| NMAE | divides by the range of the truth in each resample | divides by the range of the truth of all rows | the mean over resamples lies above the value itself |
| undefined resample | makes mean and interval undefined | is ignored | empty interval for constant predictions |
| age groups of CAMUS | patients over 80 are never reported, because the list contains `80` but the group is called `≥80` | all groups are reported | a row is missing, also from the largest difference between groups |
| age groups of EchoNet-Pediatric | end at 18 years | have no upper end | a row is missing if a patient is older |
| ids without a prediction | dropped silently | dropped and counted (`n` of `expected`) | `n` is smaller than the test split |
| non-numeric predictions | dropped, or the evaluator stops | rejected | |
| id with two predictions | the first is used (SegRWMA: both) | rejected | |
| split of the CAMUS views | all recordings | test recordings | only if the file has predictions for other splits |
| `prob_Other` | always 1 - the five others | as given, else the same | |
| counted views | the column `view_pred` | the most probable view, which is also scored | counts may disagree with scores |
"""


def page(paper: Tables, default: Tables) -> str:
    """Return the page as Markdown."""
    parts = [HEAD]
    for dataset in dict.fromkeys(spec.dataset for spec in TABLE_SPECS):
        tables = [_scores(file, paper, default) for file in _files(dataset) if file in paper.frames | default.frames]
        if tables:
            parts += [f"## {dataset}\n", *tables, *_remarks(dataset, paper, default)]
    if paper.absent:
        parts.append("## Not evaluated\n\n" + _listed(paper.absent))
    return "\n".join(parts)


def write_page(paper: Tables, default: Tables, out: Path) -> Path:
    """Write the page and return its path."""
    return write_text(page(paper, default), out / PAGE)


def _files(dataset: str) -> list[str]:
    specs = [spec for spec in TABLE_SPECS if spec.dataset == dataset]
    return list(dict.fromkeys(file for spec in specs for file in (spec.file, spec.groups_file) if file))


def _scores(file: str, paper: Tables, default: Tables) -> str:
    """Return the table of one file, one row per score of a model or subgroup."""
    left, right = _lines(paper.frames.get(file)), _lines(default.frames.get(file))
    rows = [
        (*key, _cell(left.get(key)), _cell(right.get(key)), _width(left.get(key), right.get(key)))
        for key in dict.fromkeys([*right, *left])
    ]
    head = ("of", "number", "paper", "default", "width default / paper")
    return f"### {markdown_text(file)}\n\n" + _markdown(head, rows)


def _lines(frame: pd.DataFrame | None) -> dict[tuple[str, str], dict]:
    """Return a mapping from (row, score) to value and interval."""
    if frame is None:
        return {}
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    for row in frame.to_dict("records"):
        sizes = f"n = {row['n']}"
        if "patients" in row:
            sizes += f" of {row['expected']} expected, {row['patients']} patients"
        name = " ".join(str(row[part]) for part in ("target", "model", "grouping", "group") if part in row)
        lines[name, "rows"] = {"text": sizes}
        for column, value in row.items():
            if f"{column}_ci_lo" in row:
                lines[name, column] = {
                    "value": value, "low": row[f"{column}_ci_lo"], "high": row[f"{column}_ci_hi"]
                }  # fmt: skip
            elif "grouping" in row and isinstance(value, float) and not np.isnan(value):
                lines[name, column] = {"value": value}
    return lines


def _cell(line: dict | None) -> str:
    if line is None:
        return "not reported"
    if "text" in line:
        return line["text"]
    interval = f" [{line['low']:.2f}, {line['high']:.2f}]" if "low" in line else ""
    return f"{line['value']:.2f}{interval}"


def _width(left: dict | None, right: dict | None) -> str:
    if not left or not right or "low" not in left:
        return ""
    ours, theirs = right["high"] - right["low"], left["high"] - left["low"]
    return f"{ours / theirs:.2f}" if theirs > 0 and not np.isnan(ours) else ""


def _remarks(dataset: str, paper: Tables, default: Tables) -> list[str]:
    """Return notes on a dataset's rows with the profile that each applies to."""
    notes: dict[str, list[str]] = {}
    for profile, tables in ((PAPER, paper), (BY_PATIENT, default)):
        for prefix, sentences in (("", tables.notes), ("not scored: ", tables.failures)):
            for file, text in sentences:
                if file.startswith(f"{dataset}/"):
                    notes.setdefault(f"{file}: {prefix}{text}", []).append(profile.name)
    lines = [text if len(names) == 2 else f"{text} ({names[0]} only)" for text, names in notes.items()]
    return [_listed(lines)] if lines else []


def _listed(lines: Iterable[str]) -> str:
    return "".join(f"* {markdown_text(line)}\n" for line in lines)


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([markdown_text(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
