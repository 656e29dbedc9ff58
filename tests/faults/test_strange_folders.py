"""Check that a third party's results folder runs no code, shows no forged figure and leads to no other file.

Every file that such a folder holds is replaced by hostile ones, one at a time, and every command that reads the folder is run.
"""

import json
import os
import pickle
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml

from cardiobench.cli.main import main
from cardiobench.core.errors import BadData, CardioBenchError
from cardiobench.core.extensions import extensions
from cardiobench.hub import naming
from cardiobench.hub.pull_results import pull
from cardiobench.leaderboard import model_page, source, table
from cardiobench.leaderboard.state import settle
from cardiobench.leaderboard.visitors import TABS, Visitors, outputs
from cardiobench.report.page.write import write_report
from cardiobench.results.analysis_result import AnalysisResult, point_estimate
from cardiobench.results.collect import collect
from cardiobench.results.predictions_file import save_scored
from cardiobench.results.record import CHECKSUM, checksum
from cardiobench.results.score_result import ScoreResult
from tests.hub.conftest import client, hub  # noqa: F401
from tests.report import example_results

TASK = "phantom_ecg/cd"
SCRIPT = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>"
SVG = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" onload="window.hacked=1">{SCRIPT}<text>FORGED</text></svg>'
SECRET = "the content of a private file"


class Payload:
    """Object whose pickle makes a folder."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self):
        return os.mkdir, (str(self.place),)


@pytest.fixture(scope="module")
def honest(tmp_path_factory) -> Path:
    """Return a results folder with every kind of file that a run and its report write."""
    folder = tmp_path_factory.mktemp("honest") / "results"
    for number, (model, quality) in enumerate({"org/one": 0.9, "org/two": 0.6}.items()):
        path = example_results.write_result(folder, model, TASK, quality, seed=number)
        joined, _ = example_results.scored_example(TASK, quality, number)
        save_scored(ScoreResult.load(path), joined.frame, path, validation=joined.frame)
    record = AnalysisResult(
        "prompt_sensitivity", "camus/ef", ("camus/ef",), {"n": point_estimate(3.0)}, {"wordings": wordings("rule")},
        models=({"name": "org/one"},),
    )  # fmt: skip
    record.save(folder / "org__one" / "r1" / "prompt_sensitivity" / "camus__ef.json")
    settings = {"models": ["org/one"], "tasks": [TASK]}
    (folder / "runs" / "0123456789ab").mkdir(parents=True)
    (folder / "runs" / "0123456789ab" / "run.yaml").write_text(yaml.safe_dump(settings))
    (folder / "failures.csv").write_text("recording,reason\n")
    write_report([folder], folder, png=True)
    return folder


def wordings(rule: str) -> pd.DataFrame:
    row = {"kind": "one sentence", "wording": "a heart", "score": 0.5, "low": 0.4, "high": 0.6, "floor": 0.4}
    return pd.DataFrame([{**row, "rule": rule, "metric": "mae", "unit": "%"}])


def kinds(folder: Path) -> dict[str, Path]:
    """Return one file of each kind, by a name for the test."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            top = next((name for name in ("figures", "runs") if name in path.parts), "")
            found.setdefault(f"{top}*{path.suffix if top else ''.join(path.suffixes[-2:])}", path)
    return found


KINDS = ("*.json", "*.predictions.parquet", "*.validation.parquet", "*.wordings.csv", "*.csv", "figures*.svg",
         "figures*.csv", "figures*.png", "runs*.yaml", "*.html", "*.md")  # fmt: skip


def forged_text(path: Path, elsewhere: Path) -> None:
    path.write_text(SVG)


def pickled(path: Path, elsewhere: Path) -> None:
    path.write_bytes(pickle.dumps(Payload(elsewhere / "ran")))


def yaml_object(path: Path, elsewhere: Path) -> None:
    path.write_text(f"models: !!python/object/apply:os.mkdir ['{elsewhere / 'ran'}']\n")


def private_file(path: Path, elsewhere: Path) -> None:
    path.unlink()
    path.symlink_to(elsewhere / "secret")


def pipe(path: Path, elsewhere: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def endless(path: Path, elsewhere: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)  # A sparse file of 1 TB.


def hostile_texts(path: Path, elsewhere: Path) -> None:
    """Replace all texts of a JSON record that its reader accepts, under a new checksum."""
    if path.suffix != ".json":
        return forged_text(path, elsewhere)
    record = json.loads(path.read_text())
    up = f"../../../../{elsewhere.name}/up"
    facts = record.get("model") or record["models"][0]
    facts["name"], facts["revision"] = SCRIPT, up
    record["stamp"]["suite"] = up
    record["warnings"] = [SCRIPT, up]
    if "verdict" in record:
        record["verdict"]["sentence"] = SCRIPT
        record["skipped_groups"] = {SCRIPT: SCRIPT}
    if record.get("tables"):
        path.with_suffix(f".{SCRIPT.replace('/', '')[:20]}.csv").write_text(SCRIPT)
        record["tables"] = {up: "x.csv"}
    record[CHECKSUM] = checksum(record)
    return path.write_text(json.dumps(record)) and None


HOSTILE = (forged_text, pickled, yaml_object, private_file, pipe, endless, hostile_texts)


@pytest.fixture
def strange(honest, tmp_path):
    """Return a function that copies the folder and replaces one file, and the folders around it."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "secret").write_text(SECRET)

    def make(kind: str, replace_file) -> Path:
        folder = tmp_path / "strange" / "results"
        shutil.copytree(honest, folder)
        replace_file(kinds(folder)[kind], elsewhere)
        return folder

    return make, elsewhere


def commands(folder: Path, out: Path) -> list[list[str]]:
    return [
        ["report", str(folder), "--out", str(out / "report")],
        ["report", str(folder)],
        ["report", str(folder), "--layout", "latex", "--out", str(out / "latex")],
        ["compare", str(folder), "--resamples", "20", "--csv", str(out / "pairs.csv")],
        *([["choose", str(folder), "--task", TASK]] if "choose" in extensions() else []),
        ["merge", str(folder), "--out", str(out / "merged")],
        ["rerun", str(kinds(folder).get("runs*.yaml", folder / "run.yaml"))],
        ["push", str(folder), "--to-dataset", "org/results"],
    ]


def check_written(roots: list[Path], elsewhere: Path) -> None:
    """Check that nothing hostile is in what was written, and that nothing was written elsewhere."""
    assert sorted(path.name for path in elsewhere.iterdir()) == ["secret"], "code ran, or a name was a path"
    pages = [path for root in roots for path in root.rglob("report.*") if path.is_file() and not path.is_symlink()]
    shown = "".join(path.read_text("utf-8") for path in pages if path.suffix in (".html", ".md"))
    for root in roots:
        for path in root.rglob("*"):
            if path.is_symlink() or not path.is_file() or path.stat().st_size > 10_000_000:
                continue
            text = path.read_bytes().decode("utf-8", "replace")
            assert SECRET not in text, path
            if path.suffix == ".html":
                assert text.count("<script") == 1 and "onload=" not in text and "FORGED" not in text, path
                assert "<img src=x" not in text and "script-src 'sha256-" in text, path
            if path.suffix == ".md":
                assert "<script" not in text and "<img" not in text, path
            if path.suffix == ".svg" and path.name in shown:
                assert "FORGED" not in text and "onload=" not in text and "<script" not in text, path


QUICK = {("figures*.svg", forged_text), ("*.json", hostile_texts), ("*.wordings.csv", private_file)}
CASES = [
    pytest.param(kind, how, marks=[] if (kind, how) in QUICK else pytest.mark.slow, id=f"{kind} {how.__name__}")
    for kind in KINDS
    for how in HOSTILE
]


def test_every_kind_of_file_is_replaced(honest):
    assert sorted(kinds(honest)) == sorted(KINDS)


@pytest.mark.parametrize(("kind", "how"), CASES)
def test_hostile_file_is_shown_and_followed_by_no_command(strange, capsys, tmp_path, monkeypatch, kind, how):
    make, elsewhere = strange
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    folder, out = make(kind, how), tmp_path / "out"
    replaced = kinds(folder).get(kind)
    for line in commands(folder, out):
        assert main(line) in (0, 1, 2), line
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err and SECRET not in captured.out + captured.err, line
    board(folder)
    if (
        replaced is not None
        and how in (forged_text, hostile_texts, endless)
        and kind not in ("figures*.svg", "*.html", "*.md")
    ):
        replaced.unlink()  # The forged input itself; what was written again is checked.
    check_written([out, folder], elsewhere)


def board(folder: Path) -> None:
    """Build every tab and download of the leaderboard."""
    try:
        views = source.load([str(folder)])
    except CardioBenchError:
        return
    visitors = Visitors(views, None)
    for suite, view in views.items():
        state, _ = settle(views, {"suite": suite})
        for tab in TABS:
            shown = outputs(view, state, tab)
            for name, content in shown.items():
                if isinstance(content, str) and name != "about":  # Text boxes show texts as they are.
                    assert "<script" not in content and "<img" not in content, name
        assert {Path(file).parents[1] for file in visitors.files_of(suite)} == {Path(visitors._folder.name)}
    assert table.problems and model_page.models(next(iter(views.values()))) is not None


@pytest.mark.parametrize("rule", ["../../../../elsewhere/up", "a/b", "/tmp/up", "..", "x" * 300, "\n"])
def test_name_in_a_table_is_no_path(tmp_path, rule):
    """The name of the figure comes from an untrusted table."""
    record = AnalysisResult(
        "prompt_sensitivity", "camus/ef", ("camus/ef",), {"n": point_estimate(3.0)}, {"wordings": wordings(rule)},
        models=({"name": "org/one"},),
    )  # fmt: skip
    record.save(tmp_path / "results" / "camus__ef.json")
    write_report([tmp_path / "results"], tmp_path / "out")
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert all(
        path.parent in (tmp_path / "results", tmp_path / "out", tmp_path / "out" / "figures") for path in written
    )
    assert any("prompt-sensitivity" in path.name or "wordings" in path.name for path in written)


@pytest.mark.parametrize("name", ["../x", "a/b", "", "x" * 200, "a\0b"])
def test_analysis_with_a_table_elsewhere_is_refused(tmp_path, name):
    path = AnalysisResult("alignment", "camus/ef", ("camus/ef",), {}, {"texts": wordings("")}).save(
        tmp_path / "camus__ef.json"
    )
    record = json.loads(path.read_text())
    record["tables"] = {name: "camus__ef.texts.csv"}
    record["tables_sha256"] = {name: record["tables_sha256"]["texts"]}
    record[CHECKSUM] = checksum(record)
    path.write_text(json.dumps(record))
    with pytest.raises(BadData):
        AnalysisResult.load(path)
    assert len(collect([tmp_path]).problems) == 1


def test_pull_lists_hostile_files(hub, client, honest):  # noqa: F811
    good = next(path for path in honest.rglob("*__*.json") if "probe" in path.parts).read_bytes()
    place = f"{naming.FOLDER}/bob/probe"
    hostile = {
        f"{place}/a__a.json": SVG.encode(),
        f"{place}/b__b.json": b'{"schema": 6, "schema": 6}',
        f"{place}/c__c.json": b"x" * 5_000_000,
        f"{place}/d__d.json": pickle.dumps(Payload(honest / "ran")),
    }
    hub.store.put("model", "org/model", {f"{place}/phantom_ecg__cd.json": good, **hostile})
    said = []
    results = pull("org/model", on_problem=said.append)
    assert len(results) == 1 and len(said) == 4 and not (honest / "ran").exists()
