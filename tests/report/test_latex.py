"""Compare LaTeX tables of selected tasks with a hand-written one."""

import dataclasses
from pathlib import Path

import pytest

from cardiobench.cli.main import main
from cardiobench.data import catalog
from cardiobench.report.grid import latex_text
from cardiobench.report.latex import WIDEST, best_models, latex_grids
from cardiobench.report.overview import table_name
from cardiobench.results.collect import ResultEntry
from cardiobench.results.formatting import FLOOR_MEANING
from cardiobench.scoring.compare import Comparison
from cardiobench.scoring.ranks import Pair
from tests.report import example_results
from tests.results.test_formatting import result

BY_HAND = r"""% needs \usepackage{booktabs}
\begin{table}
\centering\small
\caption{Echo: diagnoses, probe}
\begin{tabular}{lr}
\toprule
 & \begin{tabular}[t]{@{}r@{}}tmed2 \\ \scriptsize as \\ \scriptsize f1\_macro \% $\uparrow$\end{tabular} \\
\midrule
floor & 50.00 \\
\midrule
{}[x](y) & \begin{tabular}[t]{@{}r@{}}44.13 \\ \scriptsize [34.13, 54.13]\end{tabular} \\
org/a\_b & \begin{tabular}[t]{@{}r@{}}\textbf{90.00} \\ \scriptsize [80.00, 100.00]\end{tabular} \\
org/close & \begin{tabular}[t]{@{}r@{}}\textbf{88.00} \\ \scriptsize [78.00, 98.00]\end{tabular} \\
\bottomrule
\end{tabular}
"""


def pair(a, b, better, contest=("tmed2/as", "probe")):
    fields = {field.name: float("nan") for field in dataclasses.fields(Comparison)}

    class Made(Comparison):
        better = property(lambda self: better)

    return Pair(contest, a, b, Made(**fields))


def test_table_equals_a_hand_written_one():
    values = {"org/a_b": 0.9, "org/close": 0.88, "[x](y)": 0.441315}
    entries = [ResultEntry(Path(f"{name}.json"), result(value, name)) for name, value in values.items()]
    pairs = [
        pair("org/a_b", "org/close", "undecided"),
        pair("[x](y)", "org/a_b", "b"),
        pair("org/close", "[x](y)", "equivalent"),
        pair("org/a_b", "[x](y)", "undecided", contest=("tmed2/as", "knn")),
    ]
    (grid,) = latex_grids({("tmed2/as", "probe"): entries}, pairs)
    text = grid.latex()
    assert text.startswith(BY_HAND)
    assert FLOOR_MEANING in text and text.endswith("\\end{table}\n")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a_b%c&d#e$f", r"a\_b\%c\&d\#e\$f"),
        ("\\input{x}~^", r"\textbackslash{}input\{x\}\textasciitilde{}\textasciicircum{}"),
        ("a<=b ≥ ±2 −3 5×5…", r"a\textless{}=b $\geq$ $\pm$2 $-$3 5$\times$5\ldots{}"),
        ("vit---b `x`\n\u202ey", r"vit-{}-{}-b \textasciigrave{}x\textasciigrave{}  y"),
    ],
)
def test_hostile_names_are_escaped(text, written):
    assert latex_text(text) == written


def test_smallest_error_is_best_without_ties():
    results = {name: result(value, name, "camus/ef", "mae", False) for name, value in (("a", 5.0), ("b", 4.0))}
    assert best_models(results, []) == {"b"}
    assert best_models(results, [pair("a", "b", "too few to say")]) == {"a", "b"}


def test_tables_hold_as_many_tasks_as_fit_a_page():
    tasks = [task for task in catalog.list_tasks() if table_name(result(task=task)) == "ECG: diagnoses"][: WIDEST + 2]
    groups = {(task, "probe"): [ResultEntry(Path("r.json"), result(task=task))] for task in tasks}
    assert [len(grid.head) - 1 for grid in latex_grids(groups, [])] == [WIDEST, 2]


def test_command_writes_one_file(tmp_path, capsys):
    for number, (name, quality) in enumerate((("org/one", 0.95), ("org/two", 0.2))):
        example_results.write_result(tmp_path / "r", name, "phantom_ecg/cd", quality, seed=number)
    assert main(["report", str(tmp_path / "r"), "--layout", "latex", "--out", str(tmp_path / "out")]) == 0
    text = (tmp_path / "out/tables.tex").read_text()
    assert "tables.tex" in capsys.readouterr().out
    for opened in ("begin{table}", "begin{tabular}{lr}", "toprule"):
        assert text.count(f"\\{opened}") == 1
    assert (
        "org/one & \\begin{tabular}[t]{@{}r@{}}\\textbf{" in text
        and "org/two & \\begin{tabular}[t]{@{}r@{}}\\textbf{" not in text
    ), "far apart"


def test_nothing_to_rank_is_an_error(tmp_path, capsys):
    example_results.write_result(tmp_path / "r").write_text("{")
    assert main(["report", str(tmp_path / "r"), "--layout", "latex", "--out", str(tmp_path / "out")]) == 2
    assert "no result can be ranked" in capsys.readouterr().err
