"""Write results and figures as one Markdown page."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cardiobench.core.io import write_text
from cardiobench.report import beside_references, costs, poolings, probe_gain, ranks, task_means
from cardiobench.report.noise import EXPLORATORY, false_verdicts
from cardiobench.report.overview import find_task
from cardiobench.report.page import naming
from cardiobench.report.plots.draw import ReportFigures, draw_report
from cardiobench.report.plots.figure import SavedFigure
from cardiobench.results import formatting as tables
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.anchors import anchors
from cardiobench.results.collect import Collection, Problem
from cardiobench.results.score_result import ScoreResult
from cardiobench.results.verdict import Verdict

PAGE = "report.md"
HEAD = """\
# CardioBench results

Every score is shown beside its **floor**: {floor}. **Above the floor**: {above}. Intervals are over patients.
**Collapsed**: the model gives (nearly) the same answer to every recording. {exploratory}
"""
GENERATED = "## Generated recordings\n\nPhantoms and synthetic twins: these scores say nothing about patients.\n\n"


def write_markdown(
    collection: Collection, out: Path, *, figures: ReportFigures | None = None, processes: int = 1
) -> list[Path]:
    """Write the page; without matplotlib, state how to obtain figures.

    Args:
        collection: Results and problems.
        out: Output folder.
        figures: Figures from `draw_report`; None to draw task figures here.
        processes: Number of processes that draw them.

    Returns:
        Path of the page, followed by the figures drawn here.
    """
    drawn_here = figures is None
    if figures is None:
        figures = draw_report(collection, out, processes=processes, kinds=("task",))
    by_task: dict[str, list[ScoreResult]] = {}
    for result in collection.results:
        by_task.setdefault(result.task, []).append(result)
    real = [result for result in collection.results if not result.generated]
    generated = [result for result in collection.results if result.generated]
    shared = tables.data_warnings(collection.results)
    parts = [
        HEAD.format(floor=tables.FLOOR_MEANING, above=Verdict.ABOVE.meaning, exploratory=EXPLORATORY),
        false_verdicts(collection.results) + "\n",
        f"> {figures.note}\n" if figures.note else "",
        tables.markdown(real) if real else "",
        *(f"{note}.\n" for note in tables.notes(collection.results)),
        GENERATED + tables.markdown(generated) if generated else "",
        task_means.markdown(collection.entries),
        ranks.markdown(collection.entries),
        beside_references.markdown(collection.entries),
        probe_gain.markdown(collection.results),
        poolings.markdown(collection.results),
        costs.markdown(collection.results),
        _data_section(shared),
        *(
            _task_section(task, by_task[task], figures.of("task", task), out, _said(by_task[task], shared))
            for task in sorted(by_task)
        ),
        _analysis_section(record for _, record in collection.analyses),
        problem_list([*collection.problems, *figures.problems]),
    ]
    page = write_text("\n".join(part for part in parts if part), out / PAGE, errors="replace")
    return [page, *(figures.files if drawn_here else ())]


def problem_list(problems: Sequence[Problem]) -> str:
    """Return unranked results with reasons; empty if there are none."""
    if not problems:
        return ""
    rows = [(problem.file, problem.kind, problem.message, problem.subject or "–") for problem in problems]
    columns = ("file", "kind", "problem and next step", "about")
    return "## Not ranked, or not drawn\n\n" + tables.markdown_table(columns, rows)


def _said(results: Sequence[ScoreResult], shared: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the warnings of a task that are given with its dataset."""
    return [sentence for one in results for sentence in shared.get(str(one.dataset.get("name")), ())]


def _data_section(shared: Mapping[str, Sequence[str]]) -> str:
    """Return the warnings that all scores on a dataset share; empty if there are none."""
    if not shared:
        return ""
    rows = [(name, sentence) for name, sentences in shared.items() for sentence in sentences]
    return "## Data\n\nFor every score on these datasets:\n\n" + tables.markdown_table(("dataset", "warning"), rows)


def _analysis_section(analyses: Iterable[AnalysisResult]) -> str:
    """Return the warnings of analyses; empty if there are none."""
    rows = dict.fromkeys(
        (one.protocol, one.subject, ", ".join(model["name"] for model in one.models), sentence)
        for one in analyses
        for sentence in one.warnings
    )
    if not rows:
        return ""
    return "## Warnings of analyses\n\n" + tables.markdown_table(("protocol", "subject", "models", "warning"), rows)


def _task_section(
    task: str, results: list[ScoreResult], figures: Sequence[SavedFigure], out: Path, said: Sequence[str]
) -> str:
    known = find_task(task)
    lines = [f"## {tables.markdown_text(task)}", ""]
    lines += [f"{known.description}.", ""] if known and known.description else []
    lines += [f"![{figure.name}]({figure.files[0].relative_to(out).as_posix()})" for figure in figures]
    ceilings = () if results[0].generated else anchors(task).ceilings
    if ceilings:
        rows = [(c.metric, c.text, c.n, c.setting, c.source) for c in ceilings]
        lines += [
            "",
            "Agreement between human readers, in other settings:",
            "",
            tables.markdown_table(naming.CEILING_COLUMNS, rows),
        ]
    lines += [
        "",
        *(
            f"* {tables.markdown_text(r.model['name'])} {tables.markdown_text(r.label)}: {text}"
            for r in results
            if (text := tables.bounds(r))
        ),
    ]
    found = tables.warnings(results, said)
    warnings = [f"{one.sentence} ({', '.join(one.who)})" if one.who else one.sentence for one in found]
    lines += ["", *(f"* {tables.markdown_text(text)}" for text in warnings), "", _group_table(results)]
    return "\n".join(lines)


def _group_table(results: list[ScoreResult]) -> str:
    """Return subgroup scores of results that have them."""
    rows = [
        (
            result.model["name"],
            result.label,
            name,
            "; ".join(
                f"{group}: {tables.number(estimate.value, result)} [{tables.interval(estimate, result)}] n={estimate.n}"
                for group, estimate in breakdown.values.items()
            ),
            tables.gap_text(breakdown, result),
            tables.worst_group(breakdown, result) or "–",
        )
        for result in tables.ordered(results)
        for name, breakdown in result.groups.items()
    ]
    return (
        tables.markdown_table(("model", "protocol", "group", "score, 95 % CI, n", "gap", "worst"), rows) if rows else ""
    )
