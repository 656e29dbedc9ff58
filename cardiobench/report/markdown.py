"""One Markdown page of the results in a folder, with the pictures that belong to them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from cardiobench.core.errors import MissingExtra
from cardiobench.report import probe_gain as deltas
from cardiobench.report import ranks
from cardiobench.report.overview import find_task
from cardiobench.report.plots.draw import Job, draw_all
from cardiobench.results import formatting as tables
from cardiobench.results.collect import Entry, Problem
from cardiobench.results.paths import predictions_path
from cardiobench.results.score_result import ScoreResult

PAGE, PICTURES = "report.md", "report"

HEAD = """\
# CardioBench results

Every score stands beside its **floor**, the best constant prediction on the same test units: a model that does not
beat it has shown nothing. Intervals are 95 % percentile bootstrap over patients. `beaten` and `NOT beaten` say that
the paired interval of (model - floor) lies on one side of zero, `tied` that it does not.
**Collapsed**: the model gives (nearly) the same answer to everything.
"""


def write_markdown(
    found: list[tuple[Path, ScoreResult]],
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
    by_task: dict[str, list[tuple[Path, ScoreResult]]] = {}
    for path, result in found:
        by_task.setdefault(result.task, []).append((path, result))
    files: list[Path] = []
    note = ""
    if pictures is None:
        try:
            pictures, files, undrawn = _draw(by_task, out / PICTURES)
            problems = [*problems, *undrawn]
        except MissingExtra as error:
            pictures, note = {}, f"\n> {error}\n"
    sections = [
        _section(task, [result for _, result in entries], pictures.get(task, ()), out)
        for task, entries in sorted(by_task.items())
    ]
    results = [result for _, result in found]
    summary = tables.markdown(results) + "\n" + rank_table(found, problems) + deltas.markdown(results)
    text = HEAD + note + "\n" + summary + "\n".join(sections) + problem_list(problems)
    page = out / PAGE
    out.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
    return [page, *files]


def _draw(
    by_task: Mapping[str, list[tuple[Path, ScoreResult]]], folder: Path
) -> tuple[dict[str, list[Path]], list[Path], list[Problem]]:
    """Draw what the HTML page has of each task: PNG by task, all files, and what could not be drawn."""
    jobs = [
        Job(
            task,
            task.replace("/", "__"),
            folder,
            "task",
            tuple(Entry(p, r, q if (q := predictions_path(p)).is_file() else None) for p, r in entries),
            png=True,
        )
        for task, entries in by_task.items()
    ]
    # One after the other: a run that ends here may have networks in memory, which no other process needs to have.
    made = draw_all(jobs, processes=1)
    images = {
        job.about: [file for one in done.drawn for file in one.files if file.suffix == ".png"]
        for job, done in zip(jobs, made, strict=True)
    }
    files = [file for done in made for one in done.drawn for file in one.files]
    return images, files, [problem for done in made for problem in done.problems]


def rank_table(found: list[tuple[Path, ScoreResult]], problems: Sequence[Problem]) -> str:
    """Which models are better, of the answers that can be read; a sentence where the pairs are more than a page should wait for."""
    unread = {problem.file for problem in problems}
    fit = [(p, r) for p, r in found if find_task(r.task) and str(predictions_path(p)) not in unread]
    places = Counter((result.task, result.label) for _, result in fit)
    pairs = sum(count * (count - 1) // 2 for count in places.values())
    if pairs > ranks.MOST_PAIRS:
        return f"There are up to {pairs} pairs of models: `cardiobench compare` ranks them.\n\n"
    return ranks.markdown(fit)


def problem_list(problems: Sequence[Problem]) -> str:
    """What is not ranked and why; empty where there is nothing of the kind."""
    if not problems:
        return ""
    rows = [
        "| " + " | ".join(tables.markdown_text(cell) for cell in (p.file, p.kind, p.message, p.subject or "–")) + " |"
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


def _section(task: str, results: list[ScoreResult], drawn: list[Path], out: Path) -> str:
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


def _groups(results: list[ScoreResult]) -> list[str]:
    """Scores by group, for the results that have them."""
    rows = []
    for result in tables.ordered(results):
        for name, breakdown in result.groups.items():
            cells = [
                f"{label}: {tables.number(e.value, result)} [{tables.interval(e, result)}] n={e.n}"
                for label, e in breakdown.values.items()
            ]
            gap = tables.gap_text(breakdown, result)
            row = (
                result.model["name"],
                result.label,
                name,
                "; ".join(cells),
                gap,
                breakdown.worst or "–",
            )
            rows.append("| " + " | ".join(tables.markdown_text(cell) for cell in row) + " |")
    if not rows:
        return []
    return ["| model | protocol | group | score, 95 % CI, n | gap | worst |", "|---|---|---|---|---|---|", *rows]
