"""Test pushing scores of an adopted dataset: only if the command names it, and without ids, paths or predictions."""

import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from huggingface_hub import ModelCard

import cardiobench
from cardiobench.cli.main import main
from cardiobench.core import plugins
from cardiobench.data import catalog
from cardiobench.leaderboard import source, table
from cardiobench.leaderboard.verify import check, verify_submission
from cardiobench.results.collect import ResultEntry
from cardiobench.results.score_result import ScoreResult
from tests.extensions.adopt.folders import FORMATS, adopt, bundled, write_labels
from tests.hub.conftest import client, hub  # noqa: F401

BOARD, MODEL = "org/cardiobench-results", "org/model"
OWN = plugins.VARIABLES["hf_datasets"]


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    """Return an adopted dataset with recognisable ids, patients and folder, and one result."""
    root = tmp_path_factory.mktemp("hospital")
    frame, signals = bundled(40)
    frame = frame.assign(
        id=[f"SECRETID{number}" for number in range(len(frame))], patient_id="SECRETPATIENT" + frame["patient_id"]
    )
    folder = root / "SECRETFOLDER"
    folder.mkdir()
    for name, signal in zip(frame["id"], signals, strict=True):
        FORMATS["npy"][0](folder, name, signal[:50])
    labels = write_labels(frame, root / "labels.csv")
    flags = ("--target", "cd", "--positive", "cd=CD", *FORMATS["npy"][1])
    assert adopt(folder, labels, root / "own", *flags) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OWN, str(root / "own"))
        where = {"output_dir": root / "results", "cache_dir": root / "cache", "workers": 0}
        cardiobench.evaluate("cardiobench/constant", "mine/cd", "knn", **where)
    return SimpleNamespace(root=root, results=root / "results")


@pytest.fixture(autouse=True)
def own_datasets(hospital, monkeypatch):
    monkeypatch.setenv(OWN, str(hospital.root / "own"))


def sent(repository, revision="main"):
    """Return the whole content of a repository, with tables converted to text."""
    files = repository.files(revision)
    tables = [
        str(pq.read_table(io.BytesIO(content)).to_pylist())
        for name, content in files.items()
        if name.endswith(".parquet")
    ]
    return "\n".join([*files, *tables, *(content.decode("utf-8", "replace") for content in files.values())])


def push(hospital, *where):
    return main(["push", str(hospital.results), *where, "--yes"])


TO_MODEL = ("--to", MODEL, "--model", "cardiobench/constant")
TO_BOARD = ("--to-dataset", BOARD, "--with-predictions")


@pytest.mark.parametrize("where", [TO_MODEL, TO_BOARD], ids=["card", "board"])
@pytest.mark.parametrize("flags", [(), ("--local-dataset", "other")], ids=["unnamed", "another named"])
def test_own_results_are_pushed_only_if_named(hub, client, hospital, capsys, where, flags):  # noqa: F811
    hub.store.put("model", MODEL, {"README.md": b"# Net"})
    assert push(hospital, *where, *flags) != 0
    assert "--local-dataset mine" in capsys.readouterr().err
    assert set(hub.store.repository("model", MODEL).files()) == {".gitattributes", "README.md"}
    assert not [one for one in hub.store.repositories if "results" in str(one)]


def test_model_cards_get_only_scores_of_private_data(hub, client, hospital):  # noqa: F811
    hub.store.put("model", MODEL, {"README.md": b"# Net"})
    assert push(hospital, *TO_MODEL, "--local-dataset", "mine") == 0
    files = hub.store.repository("model", MODEL).files()
    assert set(files) == {".gitattributes", "README.md", "cardiobench/alice/knn/mine__cd.json"}
    (listed,) = {
        (one.dataset_type, one.metric_name.rpartition(", ")[2]) for one in ModelCard.load(MODEL).data.eval_results
    }
    assert listed == ("mine", "own data)"), "no dataset in the benchmark's namespace"
    assert "SECRET" not in sent(hub.store.repository("model", MODEL))


def test_leaderboards_get_only_scores_of_private_data(hub, client, hospital, monkeypatch, capsys):  # noqa: F811
    assert push(hospital, *TO_BOARD, "--local-dataset", "mine") == 0
    assert "its ids never leave this machine" in capsys.readouterr().out
    repository = hub.store.repository("dataset", BOARD)
    assert not [path for path in repository.files() if path.startswith("predictions/")]
    assert "SECRET" not in sent(repository) and str(hospital.root) not in sent(repository)
    (here,) = verify_submission(BOARD, "main")
    monkeypatch.delenv(OWN)
    (elsewhere,) = verify_submission(BOARD, "main")
    assert (here.outcome, elsewhere.outcome) == ("not verifiable", "not verifiable")
    assert "private data of the submitter" in elsewhere.not_verifiable
    (view,) = source.load([BOARD]).values()
    assert "own data" in table.scores(view, "mine/cd").texts("marks")[0]


@pytest.mark.parametrize("name", ["ptb_xl_sample", "tmed2"])
def test_published_dataset_cannot_be_declared_private(hub, client, hospital, name):  # noqa: F811
    """Test a result that is marked to be accepted without its predictions."""
    mine = ScoreResult.load(next(hospital.results.rglob("*__cd.json")))
    task = next(task for task in catalog.spec(name).tasks if task.kind == "binary")
    lie = replace(mine, task=task.name, dataset={**mine.dataset, "name": name, "version": catalog.spec(name).version})
    (found,) = [check(ResultEntry(Path("data/bob.parquet"), lie, pushed_by="bob"), {})]
    assert found.problems
