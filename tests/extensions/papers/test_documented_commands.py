"""Run each line on the page of the papers' tables on twins: each gives a result, an analysis, or a reason."""

import re
import shlex
from pathlib import Path

import pytest

from cardiobench.cli.main import build_parser, main
from cardiobench.data.catalog import spec
from cardiobench.data.twin import write_twin
from cardiobench.extensions.papers.echo_tables import LAYOUTS
from tests.models.tiny import tiny_open_clip

ROW = re.compile(r"^\| (?P<item>[^|]+) \| `(?P<line>cardiobench eval [^`]+)` \| (?P<differs>[^|]+) \|$", re.MULTILINE)
PAGE = Path(__file__).parents[3] / "docs" / "papers.md"
LINES = {match["item"]: match["line"] for match in ROW.finditer(PAGE.read_text(encoding="utf-8"))}
TWINS = (
    *("camus", "cardiacnet", "echonet_dynamic", "echonet_lvh", "echonet_pediatric", "hmc_qu", "segrwma", "tmed2"),
    *("chapman_ningbo", "code15", "georgia", "ptb_xl"),
)
TABLES = {f"Table {layout.number}": layout.tasks for layout in LAYOUTS}
QUICK = "--resamples 20 --limit 12 --workers 0 --jobs 1"
FEW = {name: f"--option {name}.classifiers=logistic" for name in ("cross_validation", "representation")}
FEW["cross_validation"] += " --option cross_validation.sizes=XS"
# Reasons that a line may give instead of a number: too few records on a twin, or nothing to compare.
SILENT = {
    "Table 2, linear probe": "published recipe",
    "Figure 18, maps of pathologies": "too few records of two classes",  # The test split of a twin is small.
}


def test_every_table_of_the_papers_has_a_line_of_the_command():
    assert {name.partition(",")[0] for name in LINES} >= {
        "Table 1",
        "Table 2",
        "Table 3",
        "Table 4",
        "Table 7",
        "Figure 2",
    }
    assert len(LINES) == 15
    for line in LINES.values():
        assert "--profile paper" in line
        build_parser().parse_args(shlex.split(line)[1:])


@pytest.mark.parametrize("table", TABLES)
def test_line_of_echo_table_names_its_tasks(table):
    (line,) = (line for item, line in LINES.items() if item.startswith(table) and "ECG_MODEL" not in line)
    assert build_parser().parse_args(shlex.split(line)[1:]).tasks == list(TABLES[table])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twins")
    for name in TWINS:
        write_twin(name, folder / name, patients=60 if spec(name).modality == "ecg" else 16)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(tiny_open_clip(tmp_path_factory.mktemp("models") / "org" / "clip"))


@pytest.mark.slow
@pytest.mark.parametrize("item", LINES)
def test_line_of_a_table_runs_on_twins(item, data, model, tmp_path, capsys):
    line = LINES[item].replace("ECG_MODEL", "cardiobench/ecg-morphology").replace("MODEL", model)
    options = f"{QUICK} --output-dir {tmp_path / 'results'} --cache-dir {tmp_path / 'cache'}"
    options += f" --data-dir {data}" if "phantom" not in line else ""
    options += "".join(f" {flags}" for name, flags in FEW.items() if name in line.split())
    code, (out, err) = main(shlex.split(f"{line} {options}")[1:]), capsys.readouterr()
    assert code == 0 or (code == 1 and "NoResult: " in err), (out, err)  # A twin may have too few records of a task.
    made = list((tmp_path / "results").rglob("*__*.json"))
    printed = " ".join(f"{out} {err}".split())  # Reasons are in a table, or in the last line.
    assert made or SILENT.get(item, "no line of this page is silent") in printed, printed[-3000:]
