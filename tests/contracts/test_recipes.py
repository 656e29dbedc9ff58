"""Install the package described in CONTRIBUTING.md outside the checkout and run it; run the commands of AGENTS.md."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from cardiobench.cli.main import main
from cardiobench.data.media.write import avi
from tests.forked import run_python

BLOCK = re.compile(r"<!-- (write: (?P<path>\S+)|run) -->\n```\w+\n(?P<text>.*?)```", re.S)


@pytest.fixture(scope="module")
def blocks(root):
    return list(BLOCK.finditer((root / "CONTRIBUTING.md").read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def sources(blocks, tmp_path_factory):
    """Return the package's files and a raw folder of twelve clips whose label is their brightness."""
    folder = tmp_path_factory.mktemp("package")
    for block in blocks:
        if block["path"]:
            path = folder / block["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block["text"], encoding="utf-8")
    clips = folder / "toy" / "clips"
    clips.mkdir(parents=True)
    with (folder / "toy" / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "patient", "split", "sex", "ef"])
        for number in range(12):
            split = "train" if number < 6 else "validation" if number < 8 else "test"
            (clips / f"{number}.avi").write_bytes(avi(np.full((3, 32, 32, 3), 60 + 10 * number, np.uint8), 30))
            writer.writerow([f"{number}.avi", number, split, "FM"[number % 2], 30 + 3 * number])
    return folder


@pytest.fixture(scope="module")
def installed(sources, tmp_path_factory):
    """Install the package with pip; return the installation folder, the only remaining copy."""
    target = tmp_path_factory.mktemp("installed")
    flags = ["--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "install", *flags, "--target", str(target), str(sources)], check=True)
    return target


@pytest.fixture
def raw(sources, tmp_path):
    """Return a folder with the raw recordings but without the package source, which Python would import first."""
    shutil.copytree(sources / "toy", tmp_path / "raw" / "toy")
    return tmp_path / "raw"


def call(root, installed, where, *line):
    """Run Python outside the checkout with the installed package on its path."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(installed), str(root)])}
    return run_python(*line, cwd=where, env=environment)


RANKED = """
import sys
from dataclasses import replace
from cardiobench.results.score_result import ScoreResult

print(replace(ScoreResult.load(sys.argv[1]), metric="within_five", higher_is_better=True))
"""


@pytest.mark.slow
def test_installed_package_runs_by_name(blocks, sources, installed, root, tmp_path):
    command = next(block["text"] for block in blocks if not block["path"])
    word, *line = command.replace("--data-dir toy", f"--data-dir {sources / 'toy'}").split()
    assert word == "python"
    done = call(root, installed, tmp_path, *line)
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "results" / "toy__mean-picture").glob("*/nearest_one/toy_echo__ef.json")
    result = json.loads(path.read_text())
    # Brightness is linear in the label: training clip 7, with 51 %, is the nearest neighbour of all four test clips.
    assert result["overall"]["mae"]["value"] == np.mean([54 - 51, 57 - 51, 60 - 51, 63 - 51])
    assert result["overall"]["within_five"]["value"] == 0.25
    assert result["numbers"]["within_five"] == {"better": "higher", "range": [0, 1], "unit": "fraction"}
    assert result["coverage"] == {"scored": 4, "expected": 4}
    shown = call(root, installed, tmp_path, "-c", RANKED, path)
    assert re.search(r"within_five\W.*25\.0", shown.stdout, re.S) and "0.25" not in shown.stdout, (
        shown.stdout + shown.stderr
    )
    (record,) = (tmp_path / "results" / "toy__mean-picture").glob("*/spread/toy_echo__ef.json")
    assert record.with_name("toy_echo__ef.spread.png").stat().st_size > 1000
    line[line.index("--tasks") : line.index("--data-dir")] = ["--suite", "spread_v1", "--condition", "rounded=20"]
    done = call(root, installed, tmp_path, *line)
    assert done.returncode == 0, done.stderr
    (rounded,) = (tmp_path / "results" / "toy__mean-picture").glob("*/*.rounded=20/toy_echo__ef.json")
    assert json.loads(rounded.read_text())["overall"]["mae"]["value"] == np.mean([60 - 54, 60 - 57, 60 - 60, 63 - 60])
    assert json.loads(record.read_text())["options"]["most"] == 5, "an option in the suite"
    printed = call(root, installed, tmp_path, "-m", "cardiobench.cli", "spread", record)
    # The four test clips are uniform, 140 to 170 of 255 grey levels, up to compression.
    assert float(printed.stdout) == pytest.approx(np.std([140, 150, 160, 170]) / 255, rel=0.05), printed.stderr


@pytest.mark.slow
def test_parts_run_from_folders_without_a_package(sources, root, tmp_path):
    parts = shutil.copytree(sources / "cardiobench_toy", tmp_path / "parts")
    builder = parts / "toy_echo" / "builder.py"
    builder.write_text(builder.read_text().replace(', "within_five"', ","))  # Metrics can only be added by a package.
    given = ["--datasets-dir", "parts", "--model", "parts/mean_picture.py:MeanPicture", "--data-dir", sources / "toy"]
    given += ["--seen-in-pretraining", "none"]
    done = call(
        root, tmp_path, tmp_path, "-m", "cardiobench.eval", *given, "--tasks", "toy_echo/ef", "--protocols", "knn"
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("results/toy__mean-picture/*/knn/toy_echo__ef.json"))
    (settings,) = tmp_path.glob("results/runs/*/run.yaml")
    refused = call(root, root, root, "-m", "cardiobench.cli", "rerun", settings)
    assert refused.returncode == 2 and "--datasets-dir" in refused.stderr and "--model" in refused.stderr
    flags = done.stdout.partition("repeat it with: cardiobench rerun ")[2].splitlines()[0].split()[1:]
    again = call(root, root, root, "-m", "cardiobench.cli", "rerun", settings, *flags)
    assert again.returncode == 0, again.stderr


CHECKS = """
import numpy as np
from cardiobench.testing import check_dataset, check_extension, check_metric, check_model, check_protocol

check_dataset("toy_echo", "toy")
check_metric("within_five", {"references": np.linspace(30, 70, 20), "predictions": np.linspace(28, 77, 20)})
check_model("toy/mean-picture")
check_protocol("nearest_one")
check_extension("spread")
"""


@pytest.mark.slow
def test_installed_package_passes_the_contracts(raw, installed, root):
    done = call(root, installed, raw, "-c", CHECKS)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "right", "wrong", "message"),
    [
        (
            "toy_echo/builder.py",
            'description="ejection fraction per clip"',
            'description=""',
            "toy_echo/ef has no description",
        ),
        ("toy_echo/README.md", "`toy_echo/ef`", "EF", "does not explain `toy_echo/ef`"),
        ("within_five/formula.py", "if bad:", "if False:", "within_five takes NaN in references"),
        ("within_five/formula.py", "weights.sum(axis=1)", "weights.shape[1]", "by weights and"),
        ("within_five/formula.py", '"range": (0, 1)', '"range": (0, 0.5)', "outside its range 0 to 0.5"),
        ("mean_picture.py", "pool2d(picture, 16)", "pool2d(picture, picture.shape[-2:])", "have shapes"),
        ("mean_picture.py", "parts.flatten(1)", "parts.flatten(1) - parts.mean()", "batch 1 and batch N differ"),
        ("nearest_one.py", '"validation"), data', '"validation", "test"), data', "other labels of the test recordings"),
        ("spread/figures.py", "def draw(", "def paint(", "has no draw"),
        ("spread/__init__.py", ":Spread", ":Gone", "cannot be imported"),
        ("spread/__init__.py", "from card", "import pandas\nfrom card", "imports numpy, pandas"),
        ("spread/rounded.py", "def applies(", "def suits(", "has no applies"),
        ("spread/suites/spread_v1.json", "nearest_one", "nearest_two", "provides protocol nearest_two"),
        ("spread/suites/spread_v1.json", '"options"', '"settings"', "settings"),
        ("nearest_one.py", "np.eye(len(data.task.classes))", "2 * np.eye(len(data.task.classes))", "probabilities"),
    ],
)
def test_each_mistake_is_named(installed, raw, root, tmp_path, file, right, wrong, message):
    broken = shutil.copytree(installed, tmp_path / "broken")
    path = broken / "cardiobench_toy" / file
    text = path.read_text()
    assert right in text
    path.write_text(text.replace(right, wrong))
    part = next(
        name for name in ("toy_echo", "within_five", "mean-picture", "nearest_one", "spread") if name[:4] in file
    )
    lines = [line for line in CHECKS.splitlines() if "import" in line or part in line]
    done = call(root, broken, raw, "-c", "\n".join(lines))
    assert "AssertionError" in done.stderr and message in done.stderr, done.stderr


@pytest.fixture(scope="module")
def agents(root):
    """Return the text of AGENTS.md."""
    return (root / "AGENTS.md").read_text(encoding="utf-8")


def test_page_for_agents_is_short_and_names_what_exists(root, agents):
    assert len(agents.splitlines()) <= 60
    targets = re.findall(r"^make ([\w-]+)", agents, re.MULTILINE)
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    assert targets and all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
    named = {path for path in re.findall(r"`((?:cardiobench|docs|hf_\w+|model_cards|tests)/[^`]*)`", agents)}
    assert len(named) > 10
    for path in named - {"docs/generated/"}:  # `make docs` writes this folder.
        assert (root / path.partition("<")[0]).exists(), path


@pytest.mark.slow
def test_commands_for_agents_run(root, agents, monkeypatch, tmp_path):
    (block,) = re.findall(r"```bash\n(.*?)```", agents, re.DOTALL)
    lines = [line.split() for line in block.splitlines()]
    assert [line[0] for line in lines] == [".venv/bin/python", ".venv/bin/cardiobench", ".venv/bin/cardiobench"]
    _, *words = lines[0]
    done = subprocess.run([sys.executable, *words], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    monkeypatch.chdir(tmp_path)
    for _, *words in lines[1:]:
        assert main(words) == 0, words
