"""LaTeX tables of scores, one for each task and protocol."""

import math
from collections.abc import Sequence

from cardiobench.extensions.manuscript.tex import label, tex
from cardiobench.report.contests import Groups, model_names
from cardiobench.report.latex import best_models
from cardiobench.results import formatting
from cardiobench.results.collect import ResultEntry
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.ranks import Contest, Pair

LETTERS = "abcdefghijklmnopqrstuvwxyz"
COLUMNS = ("model", "score", "95\\,\\% interval", "$n$", "patients", "coverage", "verdict")


def score_tables(groups: Groups, pairs: Sequence[Pair]) -> str:
    """Return booktabs tables, each with a caption, a label, footnotes, and n, patients, coverage and verdict of each row.

    Args:
        groups: Mapping from task and condition to results ranked together.
        pairs: Comparisons of all pairs of models; the best and those not distinguished from it are bold.
    """
    return "\n".join(
        _table(contest, entries, [pair for pair in pairs if pair.contest == contest and not pair.beside])
        for contest, entries in groups.items()
    )


def _table(contest: Contest, entries: Sequence[ResultEntry], pairs: Sequence[Pair]) -> str:
    task, condition = contest[0], contest[1]
    results = dict(zip(model_names(entries), (entry.result for entry in entries), strict=True))
    first = entries[0].result
    best = best_models(results, pairs)
    flags = list(dict.fromkeys(mark for result in results.values() for mark in formatting.flags(result)))
    order = {id(result): place for place, result in enumerate(formatting.ordered(list(results.values())))}
    caption = (
        f"{formatting.metric_name(first)} on {task} by {condition}, with 95 % intervals over patients. n: scored units. Bold: the best "
        "score, and all that a paired comparison on the same patients does not distinguish from it."
    )
    lines = [
        "% needs \\usepackage{booktabs,graphicx}",
        "\\begin{table}",
        "\\centering\\small",
        f"\\caption{{{tex(caption)}}}",
        f"\\label{{{label('tab', task, condition)}}}",
        # A table that is wider than the text is made smaller.
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%",
        f"\\begin{{tabular}}{{l{'r' * (len(COLUMNS) - 2)}l}}",
        "\\toprule",
        " & ".join(COLUMNS) + " \\\\",
        "\\midrule",
        *(
            _row(name, results[name], name in best, flags)
            for name in sorted(results, key=lambda name: order[id(results[name])])
        ),
        "\\bottomrule",
        "\\end{tabular}}",
        f"\\\\[2pt]{{\\footnotesize {tex(_note(first, flags))}}}",
        "\\end{table}",
        "",
    ]
    return "\n".join(lines)


def _row(name: str, result: ScoreResult, best: bool, flags: Sequence[str]) -> str:
    marks = [LETTERS[flags.index(mark) % len(LETTERS)] for mark in formatting.flags(result)]
    score = tex(formatting.number(result.score.value, result))
    cells = [
        tex(name) + (f"\\textsuperscript{{{','.join(marks)}}}" if marks else ""),
        f"\\textbf{{{score}}}" if best and not math.isnan(result.score.value) else score,
        tex(formatting.interval(result.score, result)),
        str(result.score.n),
        str(result.score.n_patients),
        tex(formatting.coverage(result)),
        tex(formatting.verdict(result)),
    ]
    start = "{}" if cells[0][:1] in ("[", "*") else ""  # LaTeX would read these as an argument of the line break.
    return start + " & ".join(cells) + " \\\\"


def _note(first: ScoreResult, flags: Sequence[str]) -> str:
    reached = f" ({first.floor.reached_by})" if first.floor.reached_by else ""
    marks = [f"({LETTERS[number % len(LETTERS)]}) {mark}" for number, mark in enumerate(flags)]
    return f"Floor {formatting.floor(first)}{reached}. " + "; ".join(marks) + ("." if marks else "")
