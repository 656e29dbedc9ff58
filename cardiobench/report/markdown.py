"""One Markdown page of the results in a folder, with the pictures that belong to them."""

from pathlib import Path

import pandas as pd

from cardiobench.data import catalog
from cardiobench.errors import MissingData, MissingExtra
from cardiobench.report import plots, tables
from cardiobench.report.console import Console
from cardiobench.report.record import is_record
from cardiobench.report.result import Result, predictions_path

PAGE, PICTURES = "report.md", "report"

HEAD = """\
# CardioBench results

Every score stands beside its **floor**, the best constant prediction on the same test units: a model that does not
beat it has shown nothing. Intervals are 95 % percentile bootstrap over patients. `beaten` and `NOT beaten` say that
the paired interval of (model - floor) lies on one side of zero, `tied` that it does not.
**Collapsed**: the model gives (nearly) the same answer to everything.
"""


def find_results(folder: Path) -> list[tuple[Path, Result]]:
    """Every result file below a folder; `MissingData` when there is none."""
    paths = sorted(folder.glob("*/*/*/*__*.json"))
    if not paths:
        raise MissingData(
            f"no result in {folder}. Run: accelerate launch -m cardiobench.eval --model ID --output-dir {folder}"
        )
    return [(path, Result.load(path)) for path in paths if not is_record(path)]


def report_folder(folder: Path, out: Path) -> None:
    """Write the page of all results in a folder and say where it is."""
    screen = Console()
    found = find_results(folder)
    screen.results([result for _, result in found])
    screen.files(write_page(found, out), out)


def write_page(found: list[tuple[Path, Result]], out: Path) -> list[Path]:
    """The page and its pictures; returns the files, the page first.

    Without matplotlib the page has no pictures and says how to get them.
    """
    sections, files = [], []
    note = ""
    by_task: dict[str, list[tuple[Path, Result]]] = {}
    for path, result in found:
        by_task.setdefault(result.task, []).append((path, result))
    for task, entries in sorted(by_task.items()):
        drawn: list[Path] = []
        try:
            drawn = _draw(task, entries, out / PICTURES)
        except MissingExtra as error:
            note = f"\n> {error}\n"
        files += drawn
        sections.append(_section(task, [result for _, result in entries], drawn, out))
    text = HEAD + note + "\n" + tables.markdown([result for _, result in found]) + "\n" + "\n".join(sections)
    page = out / PAGE
    out.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
    return [page, *files]


def _draw(task: str, entries: list[tuple[Path, Result]], folder: Path) -> list[Path]:
    """Forest of all models, and the predictions of the best one that has not collapsed."""
    stem = task.replace("/", "__")
    results = [result for _, result in entries]
    drawn = [plots.forest(results, folder / f"{stem}.scores.png")]
    alive = [result for result in tables.ordered(results) if not result.collapsed]
    if alive:
        best = alive[0]
        path = next(path for path, result in entries if result is best)
        predictions = pd.read_parquet(predictions_path(path))
        spec = catalog.task(task)
        if spec.kind == "regression":
            drawn.append(plots.agreement(best, predictions, folder / f"{stem}.agreement.png"))
        else:
            drawn.append(plots.confusion(best, predictions, spec.classes, folder / f"{stem}.confusion.png"))
    return drawn


def _section(task: str, results: list[Result], drawn: list[Path], out: Path) -> str:
    lines = [f"## {tables.markdown_text(task)}", ""]
    description = catalog.task(task).description
    if description:
        lines += [description + ".", ""]
    lines += [f"![{path.stem}]({path.relative_to(out).as_posix()})" for path in drawn]
    warned = [
        f"* {tables.markdown_text(text + (f' ({who})' if who else ''))}" for _, text, who in tables.warnings(results)
    ]
    lines += ["", *warned]
    lines += ["", *_groups(results)]
    return "\n".join(lines) + "\n"


def _groups(results: list[Result]) -> list[str]:
    """Scores by group, for the results that have them."""
    rows = []
    for result in tables.ordered(results):
        for name, breakdown in result.groups.items():
            cells = [
                f"{label}: {tables.number(e.value, result)} [{tables.interval(e, result)}] n={e.n}"
                for label, e in breakdown.values.items()
            ]
            gap = f"{tables.number(breakdown.gap.value, result)}"
            protocol = tables.protocol_name(result)
            rows.append(
                f"| {tables.markdown_text(result.model['name'])} | {protocol} | {name} | {tables.markdown_text('; '.join(cells))} | {gap} |"
            )
    if not rows:
        return []
    return ["| model | protocol | group | score, 95 % CI, n | gap |", "|---|---|---|---|---|", *rows]
