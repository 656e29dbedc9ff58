"""One Markdown page of the results in a folder, with the pictures that belong to them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from cardiobench.errors import MissingExtra
from cardiobench.report import deltas, group_plots, plots, ranks, tables
from cardiobench.report.boards import find_task
from cardiobench.report.collect import Problem
from cardiobench.report.predictions_file import read_predictions
from cardiobench.report.result import Result, predictions_path

PAGE, PICTURES = "report.md", "report"

HEAD = """\
# CardioBench results

Every score stands beside its **floor**, the best constant prediction on the same test units: a model that does not
beat it has shown nothing. Intervals are 95 % percentile bootstrap over patients. `beaten` and `NOT beaten` say that
the paired interval of (model - floor) lies on one side of zero, `tied` that it does not.
**Collapsed**: the model gives (nearly) the same answer to everything.
"""


def write_page(
    found: list[tuple[Path, Result]],
    out: Path,
    *,
    pictures: Mapping[str, list[Path]] | None = None,
    problems: Sequence[Problem] = (),
) -> list[Path]:
    """The page and its pictures; returns the files, the page first.

    Without matplotlib the page has no pictures and says how to get them.

    Args:
        found: results with their files.
        out: folder.
        pictures: task -> pictures that are drawn already; drawn here when None.
        problems: what was found and is not ranked.
    """
    sections, files = [], []
    note = ""
    by_task: dict[str, list[tuple[Path, Result]]] = {}
    for path, result in found:
        by_task.setdefault(result.task, []).append((path, result))
    for task, entries in sorted(by_task.items()):
        drawn: list[Path] = list((pictures or {}).get(task, ()))
        if pictures is None:
            try:
                drawn = _draw(task, entries, out / PICTURES)
            except MissingExtra as error:
                note = f"\n> {error}\n"
            files += drawn
        sections.append(_section(task, [result for _, result in entries], drawn, out))
    results = [result for _, result in found]
    summary = tables.markdown(results) + "\n" + rank_table(found, problems) + deltas.markdown(results)
    text = HEAD + note + "\n" + summary + "\n".join(sections) + problem_list(problems)
    page = out / PAGE
    out.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
    return [page, *files]


def _draw(task: str, entries: list[tuple[Path, Result]], folder: Path) -> list[Path]:
    """Forest of all models, and the predictions of the best one that has not collapsed."""
    stem = task.replace("/", "__")
    results = [result for _, result in entries]
    drawn = [plots.forest(results, folder / f"{stem}.scores.png")]
    spec, answers = find_task(task), {id(result): predictions_path(path) for path, result in entries}
    alive = [r for r in tables.ordered(results) if not r.collapsed and answers[id(r)].is_file()]
    if alive and spec:
        best = alive[0]
        predictions = read_predictions(answers[id(best)])
        if spec.kind == "regression":
            drawn.append(plots.agreement(best, predictions, folder / f"{stem}.agreement.png"))
        else:
            drawn.append(plots.confusion(best, predictions, spec.classes, folder / f"{stem}.confusion.png"))
        if best.groups:
            drawn.append(group_plots.subgroups(best, predictions, spec, folder / f"{stem}.groups.png"))
    return drawn


def rank_table(found: list[tuple[Path, Result]], problems: Sequence[Problem]) -> str:
    """Which models are better, of the answers that can be read; a sentence where the pairs are more than a page should wait for."""
    unread = {problem.where for problem in problems}
    fit = [(p, r) for p, r in found if find_task(r.task) and str(predictions_path(p)) not in unread]
    places = Counter((result.task, tables.protocol_name(result)) for _, result in fit)
    pairs = sum(count * (count - 1) // 2 for count in places.values())
    if pairs > ranks.MOST_PAIRS:
        return f"There are up to {pairs} pairs of models: `cardiobench compare` ranks them.\n\n"
    return ranks.markdown(fit)


def problem_list(problems: Sequence[Problem]) -> str:
    """What is not ranked and why; empty where there is nothing of the kind."""
    if not problems:
        return ""
    rows = [
        "| " + " | ".join(tables.markdown_text(cell) for cell in (p.where, p.kind, p.what, p.about or "–")) + " |"
        for p in problems
    ]
    head = [
        "",
        "## Not ranked, or not drawn",
        "",
        "| file | kind | what is wrong, and what to do | about |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *rows]) + "\n"


def _section(task: str, results: list[Result], drawn: list[Path], out: Path) -> str:
    lines = [f"## {tables.markdown_text(task)}", ""]
    known = find_task(task)
    if known and known.description:
        lines += [known.description + ".", ""]
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
            gap = group_plots.gap_text(breakdown, result)
            row = (
                result.model["name"],
                tables.protocol_name(result),
                name,
                "; ".join(cells),
                gap,
                breakdown.worst or "–",
            )
            rows.append("| " + " | ".join(tables.markdown_text(cell) for cell in row) + " |")
    if not rows:
        return []
    return ["| model | protocol | group | score, 95 % CI, n | gap | worst |", "|---|---|---|---|---|---|", *rows]
