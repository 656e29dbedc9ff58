"""Test the papers' tables: ranks by hand, published numbers next to ours, and escaping of hostile names."""

import dataclasses
import re

import pandas as pd
import pytest

from cardiobench.cli.main import main
from cardiobench.extensions.papers import echo_tables
from cardiobench.report.grid import Grid, GridCell, latex_text, mark_best
from cardiobench.results.score_result import Estimate, Judgement
from tests.report import example_results
from tests.results.test_formatting import result


def zero_shot(model, task, value, **more):
    metric = {"metric": "mae", "higher": False, "unit": "%"} if task.endswith("/ef") else {}
    made = result(value, model, task, **metric, **more)
    return dataclasses.replace(made, protocol="zero_shot", coverage={"scored": 100, "expected": 100})


def rows(grid):
    return {label: dict(zip(grid.head[1:], cells, strict=True)) for block in grid.blocks for label, cells in block}


def test_best_follows_the_direction_of_the_metric():
    cells = [GridCell(str(value), value) for value in (3.0, 1.0, 2.0, 1.0)] + [GridCell()]
    assert [cell.place for cell in mark_best(cells, higher_is_better=False)] == [0, 1, 2, 1, 0]
    assert [cell.place for cell in mark_best(cells, higher_is_better=True)] == [1, 0, 2, 0, 0]


def test_table_1_has_floors_ours_and_the_published_numbers():
    ours = [
        zero_shot("org/one", "camus/ef", 9.999),
        zero_shot("org/two", "camus/ef", 12.0),
        zero_shot("org/one", "tmed2/as", 0.5),
        zero_shot("org/two", "tmed2/as", 0.441315, collapsed=True),
        dataclasses.replace(result(0.9, "org/one", "tmed2/as"), protocol="probe"),
    ]
    first, second, third = echo_tables.echo_grids(ours, floor=lambda task: 0.25)
    table = rows(first)
    assert table["floor"]["camus/ef ↓"].text == "0.25" and table["floor"]["tmed2/as ↑"].text == "25.00"
    assert table["org/one (zero_shot)"]["camus/ef ↓"] == GridCell("10.00", 10.0, 1)
    assert table["org/two (zero_shot)"]["camus/ef ↓"].place == 2
    assert table["org/two (zero_shot)"]["tmed2/as ↑"].text == "44.13 ∅"
    # Table 1 of arXiv:2510.00520: EchoCLIP has 9.83 and SigLIP2 9.28 (the best) on CAMUS.
    assert table["EchoCLIP, published"]["camus/ef ↓"] == GridCell("9.83", 9.83, 2)
    assert table["SigLIP2, published"]["camus/ef ↓"].place == 1
    assert "tmed2/as ↑" not in second.head, "no column of Table 2"
    assert third.head[1] == "echonet_dynamic/view_named ↑" and len(third.head) == 10


def test_models_are_grouped_by_family_and_videos_are_marked():
    ours = [
        zero_shot(name, "camus/ef", 9.0)
        for name in ("lab/new", "facebook/dinov3-vits16-pretrain-lvd1689m", "echonet/EchoPrime")
    ]
    grid = echo_tables.echo_grids(ours, floor=lambda task: 0.25)[0]
    _, own, published = ([(label, cells[-1].text) for label, cells in block] for block in grid.blocks)
    assert [kind for _, kind in own] == ["echo ●", "general", "–"]
    assert dict(published)["PanEcho, published"] == "echo ●" and dict(published)["EchoCLIP, published"] == "echo"
    assert [kind.split()[0] for _, kind in published] == ["echo"] * 3 + ["biomedical"] + ["general"] * 2
    table = echo_tables.echo_numbers([grid])["echo_table_1"]
    assert set(table["family"]) == {"echo", "echo ●", "biomedical", "general", "–"} and "family" not in set(
        table["task"]
    )


def paper_variant(made, variant):
    model = {**made.model, "revision": "r1", "preprocessing": {"variant": variant}}
    return dataclasses.replace(made, model=model, coverage={"scored": 100, "expected": 100})


def test_table_2_has_nine_columns_and_the_change_from_table_1():
    task = "echonet_lvh/ivsd"
    metric = {"metric": "mae", "higher": False, "unit": "cm"}
    zero = dataclasses.replace(result(0.6149, "org/one", task, **metric), protocol="zero_shot")
    other = dataclasses.replace(zero, variant="expectation", overall={"mae": Estimate(0.1, 0.1, 0.1, 9, 9)})
    own = dataclasses.replace(result(0.30, "org/two", task, **metric), protocol="native")
    probes = [
        dataclasses.replace(result(0.50, f"org/{name}", task, **metric), protocol="probe")
        for name in ("one", "two", "new")
    ]
    views = dataclasses.replace(result(0.6, "org/one", "cardiacnet/asd"), protocol="zero_shot")
    results = [
        *(paper_variant(one, "paper") for one in (other, zero, own, views)),
        *(paper_variant(one, "paper_probe") for one in (*probes, result(0.5, "org/one", "cardiacnet/asd"))),
    ]
    grid = echo_tables.echo_grids(results, floor=lambda task: 0.25)[1]
    assert len(grid.head) == 1 + 2 * 9 + 1 and not any("/ef" in name or "/as " in name for name in grid.head)
    table = rows(grid)
    change = f"Δ {task} ↑"
    assert table["org/one (probe)"][f"{task} ↓"].text == "0.50" and table["org/one (probe)"][change].text == "+0.11"
    assert table["org/two (probe)"][change].text == "-0.20", "the model's own head"
    assert table["org/new (probe)"][change].text == "–" and table["floor"][change].text == "–"
    assert table["org/one (probe)"]["Δ cardiacnet/asd ↑"].text == "-10.00"
    # EchoCLIP has 0.57 in Table 1 and 0.28 in Table 2 of arXiv:2510.00520, and 47.88 and 38.49 for ASD.
    assert table["EchoCLIP, published"][change].text == "+0.29"
    assert table["EchoCLIP, published"]["Δ cardiacnet/asd ↑"].text == "-9.39"
    assert table["EchoFM, published"][change].text == "–", "not in Table 1"


def test_generated_and_one_class_results_are_left_out():
    twin = dataclasses.replace(zero_shot("b", "camus/ef", 1.0), generated=True)
    assert "b (zero_shot)" not in rows(echo_tables.echo_grids([twin], floor=lambda task: 0.0)[0])
    one_class = dataclasses.replace(
        zero_shot("a", "echonet_dynamic/view_named", 0.962),
        verdict=Judgement("no comparison possible", "one class"),
        metric="accuracy",
        overall={"accuracy": Estimate(0.962, 0.95, 0.97, 100, 100)},
    )
    views = rows(echo_tables.echo_grids([one_class], floor=lambda task: 0.0)[2])
    assert views["a (zero_shot)"]["echonet_dynamic/view_named ↑"].text == "98.06 †", "2 x 0.962 / 1.962"
    assert views["a (zero_shot)"]["echonet_dynamic/view_named ↑"].place == 0


@pytest.mark.parametrize(
    ("part", "facts"),
    [
        ("dataset", {"limit": 60}),
        ("dataset", {"overlays": "masked"}),
        ("dataset", {"local": True}),
        ("model", {"condition": "leads=I"}),
    ],
)
def test_results_on_other_recordings_are_not_beside_published_scores(part, facts):
    whole = zero_shot("a", "camus/ef", 1.0)
    other = dataclasses.replace(whole, **{part: {**getattr(whole, part), **facts}})
    assert echo_tables.own_results(echo_tables.LAYOUTS[0], [whole, other]) == [whole]


def test_incomplete_results_are_marked_and_not_ranked():
    whole, part = zero_shot("a", "camus/ef", 9.0), zero_shot("b", "camus/ef", 1.0)
    part = dataclasses.replace(part, coverage={"scored": 99, "expected": 100})
    table = rows(echo_tables.echo_grids([whole, part], floor=lambda task: 0.0)[0])
    assert table["b (zero_shot)"]["camus/ef ↓"].text == "1.00 ◔" and table["b (zero_shot)"]["camus/ef ↓"].place == 0
    assert table["a (zero_shot)"]["camus/ef ↓"].place == 1


def test_people_are_below_the_floor_in_task_metric():
    people = rows(echo_tables.echo_grids([], floor=lambda task: 0.0)[0])["people, in other settings"]
    assert people["camus/ef ↓"].text == "6.29 to 7.23" and people["tmed2/as ↑"].text == "–"


def test_floors_of_shipped_splits():
    """Check that guessing two classes at the class rates has an expected macro F1 of 1/2 for any rates."""
    assert echo_tables.floors_of([])("cardiacnet/asd") == pytest.approx(0.5)


@pytest.mark.parametrize(
    "name",
    ["<script>", "[x](javascript:alert(1))", "\\input{/etc/passwd} $x$ & %", "a_b^c~d#", "x" * 10_000, "\u202emodel"],
)
def test_hostile_names_are_escaped(name):
    grid = Grid("t", "title", ("model", "x"), (((name, (GridCell("1", 1.0, 1),)),),))
    text = grid.markdown()
    assert "<script" not in text and "](javascript" not in text.replace("\\](", "") and text.count("\n| ") == 3
    latex = grid.latex()
    line = next(line for line in latex.splitlines() if "\\textbf{1}" in line)
    assert not re.search(r"(?<!\\)[$&%#_^~](?!.*textbf)", line.partition(" & ")[0]) and "\\input{" not in line


def test_latex_signs():
    assert (
        latex_text("a\\b_50% ~ <x>\nnext")
        == "a\\textbackslash{}b\\_50\\% \\textasciitilde{} \\textless{}x\\textgreater{} next"
    )


def test_command_writes_markdown_latex_and_csv(tmp_path, capsys):
    folder = str(tmp_path / "r")
    example_results.write_result(tmp_path / "r", "org/one", "phantom_echo/ef")
    assert main(["report", folder, "--layout", "paper", "--out", str(tmp_path / "none")]) == 2
    assert "no result belongs in a table of the papers" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
    example_results.write_result(tmp_path / "r", "org/one", "echonet_lvh/lvidd")
    assert main(["report", folder, "--layout", "paper", "--out", str(tmp_path / "out")]) == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"paper_tables.md", "paper_tables.tex", "echo_table_2.csv"} <= names
    assert not {"echo_table_1.csv", "echo_table_3.csv"} & names, "no row of this benchmark"
    latex = (tmp_path / "out/paper_tables.tex").read_text()
    assert latex.count("\\toprule") == latex.count("\\bottomrule") == 1
    table = pd.read_csv(tmp_path / "out/echo_table_2.csv")
    assert "org/one (probe)" in set(table["model"]) and table["model"].str.endswith("published").any()
