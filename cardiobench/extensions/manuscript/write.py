"""Write the layout `manuscript` of `cardiobench report`."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cardiobench.core.errors import MissingData, MissingExtra
from cardiobench.core.io import write_atomic, write_text
from cardiobench.extensions.manuscript.bibliography import bibliography
from cardiobench.extensions.manuscript.checklists import CHECKLISTS, to_latex, to_markdown
from cardiobench.extensions.manuscript.facts import facts
from cardiobench.extensions.manuscript.methods import methods
from cardiobench.extensions.manuscript.tables import score_tables
from cardiobench.extensions.manuscript.tex import PREAMBLE, cite, cite_markdown, label, tex
from cardiobench.report.contests import ranked_results
from cardiobench.report.page.naming import anchor
from cardiobench.report.plots.style import figure_style
from cardiobench.report.ranks import compare_all_pairs
from cardiobench.results.collect import Collection, Problem
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.ranks import Contest

MAIN = "manuscript.tex"
PAPER = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\usepackage{textcomp,booktabs,longtable,graphicx,url}
%s\begin{document}
\section*{Methods}
\input{methods}
\section*{Results}
\input{tables}
\input{figures}
\section*{Checklists}
%s
\bibliographystyle{plain}
\bibliography{references}
\end{document}
"""


def write_manuscript(collection: Collection, out: Path) -> tuple[list[Path], list[Problem]]:
    """Write tables, figures, methods, references and checklists, and a file that includes them.

    Args:
        collection: Loaded results.
        out: Output folder.

    Returns:
        Written files, and problems with comparisons or figures.

    Raises:
        MissingData: No result can be ranked.
    """
    groups = ranked_results(collection.entries)
    if not groups:
        raise MissingData(
            "no result can be ranked, so there is nothing to write. Run `cardiobench report` for the reasons."
        )
    results = [entry.result for entries in groups.values() for entry in entries]
    pairs, left_out, _ = compare_all_pairs(collection.entries)
    problems = [Problem("tables.tex", "not compared", sentence) for sentence in left_out]
    known, paragraphs = facts(results), methods(results)
    figures, drawn = _figures({key: [one.result for one in group] for key, group in groups.items()}, out, problems)
    texts = {
        "tables.tex": score_tables(groups, pairs),
        "figures.tex": figures,
        "methods.tex": "\n".join(f"\\paragraph{{{tex(title)}}} {cite(text)}\n" for title, text in paragraphs.items()),
        "methods.md": "\n".join(f"**{title}.** {cite_markdown(text)}\n" for title, text in paragraphs.items()),
        "references.bib": bibliography(results),
        MAIN: PAPER % (PREAMBLE, "\n".join(f"\\input{{{name}}}" for name in CHECKLISTS)),
    }
    for name in CHECKLISTS:
        texts |= {f"{name}.md": to_markdown(name, known), f"{name}.tex": to_latex(name, known)}
    return [*(write_text(text, out / name) for name, text in texts.items()), *drawn], problems


def _figures(groups: dict[Contest, list[ScoreResult]], out: Path, problems: list[Problem]) -> tuple[str, list[Path]]:
    """Draw the scores of each task as PDF and return the LaTeX that includes them at column width, and the files."""
    by_task: dict[str, list[ScoreResult]] = {}
    for contest, results in groups.items():
        by_task.setdefault(contest[0], []).extend(results)
    texts, files = [], []
    for task, results in by_task.items():
        stem = anchor("scores", task)
        try:
            caption = _draw(results, out / f"{stem}.pdf")
        except MissingExtra as error:
            problems.append(Problem("figures.tex", "no picture", str(error)))
            break
        files.append(out / f"{stem}.pdf")
        texts.append(
            "\n".join(
                [
                    "\\begin{figure}",
                    "\\centering",
                    f"\\includegraphics[width=\\columnwidth]{{{stem}.pdf}}",
                    f"\\caption{{{tex(caption)}}}",
                    f"\\label{{{label('fig', task)}}}",
                    "\\end{figure}",
                    "",
                ]
            )
        )
    return "\n".join(texts), files


def _draw(results: Sequence[ScoreResult], path: Path) -> str:
    """Save the figure of a task's scores as PDF, with reproducible bytes, and return its caption."""
    with figure_style():
        import matplotlib

        from cardiobench.report.plots.scores import scores_figure

        figure = scores_figure(results)
        with matplotlib.rc_context({"pdf.fonttype": 42}):
            save = partial(figure.figure.savefig, format="pdf", metadata={"CreationDate": None})
            write_atomic(path, save)
    return figure.caption
