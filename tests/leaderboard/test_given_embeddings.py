"""Check that results of external embeddings form a separate group and never appear in a model card."""

import io

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import cardiobench
from cardiobench.cli.main import main
from cardiobench.data.open import open_dataset
from cardiobench.hub.results_dataset import push_to_dataset
from cardiobench.leaderboard import source, table
from cardiobench.leaderboard.verify import verify_submission
from cardiobench.results.formatting import ELSEWHERE
from cardiobench.results.record import EMBEDDINGS, NOT_SEEN
from cardiobench.results.score_result import ScoreResult
from tests.hub.conftest import client, hub  # noqa: F401
from tests.hub.results import consistent

REPOSITORY, TASK = "org/cardiobench-results", "ptb_xl_sample/cd"


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Return results of two files of vectors for the bundled ECGs; one contains some label information."""
    folder = tmp_path_factory.mktemp("given")
    frame = open_dataset("ptb_xl_sample", None, need_media=False).frame
    for name, signal in (("lab/net", 1.0), ("lab/other", 0.0)):
        vectors = np.random.default_rng(0).normal(size=(len(frame), 4))
        vectors[:, 0] += signal * (frame["cd"] == "CD")
        file = pd.DataFrame(vectors, columns=["v0", "v1", "v2", "v3"]).assign(id=list(frame["id"]))
        run = {"output_dir": folder / "results", "cache_dir": folder / "cache", "workers": 0}
        cardiobench.evaluate((), TASK, "knn", embeddings=file, model_name=name, **run)
    return folder / "results"


@pytest.fixture
def pushed(hub, client, given):  # noqa: F811
    """Push both results, and return the dataset of results."""
    assert main(["push", str(given), "--to-dataset", REPOSITORY, "--with-predictions", "--yes"]) == 0
    return hub.store.repository("dataset", REPOSITORY)


@pytest.mark.slow
def test_given_embeddings_are_verified_and_the_unchecked_part_is_stated(pushed, capsys):
    checks = verify_submission(REPOSITORY, "main")
    assert [check.outcome for check in checks] == ["ok", "ok"]
    assert all(f"on trust: model: {NOT_SEEN}" in check.notes for check in checks)
    files = pushed.files()
    rows = [
        row for path in files if path.startswith("data/") for row in pq.read_table(io.BytesIO(files[path])).to_pylist()
    ]
    assert {row["model"] for row in rows} == {"lab/net", "lab/other"}
    assert all(NOT_SEEN in row["warnings"].splitlines() for row in rows)
    for path in (path for path in files if path.startswith("predictions/")):
        answers = {"y_pred", "p_no CD", "p_CD"}
        assert set(pd.read_parquet(io.BytesIO(files[path]))) == {"id", *answers, *(f"refits_{one}" for one in answers)}


@pytest.mark.slow
def test_given_embeddings_are_ranked_separately(pushed, given):
    model = consistent(task=TASK, protocol="knn", dataset=ScoreResult.load(next(given.rglob("*__cd.json"))).dataset)
    push_to_dataset([model], REPOSITORY, dry_run=False, on_diff=lambda text: None)
    (view,) = source.load([REPOSITORY]).values()
    rows = table.scores(view, TASK)
    assert rows.texts("place") == ["1", "1–2", "1–2"] and "org/model" in rows.texts("model")[0]
    assert [EMBEDDINGS in marks for marks in rows.texts("marks")] == [False, True, True]
    assert ELSEWHERE in table.about(view, TASK)


def test_given_embeddings_are_not_written_to_model_cards(hub, client, given, tmp_path, capsys):  # noqa: F811
    model = hub.store.put("model", "lab/net", {"README.md": b"# Net"})
    assert main(["push", str(given), "--to", "lab/net", "--yes"]) == 2
    said = capsys.readouterr().err
    assert "origin was not verified" in said and "--to-dataset" in said
    assert set(model.files()) == {".gitattributes", "README.md"}
    pd.DataFrame({"id": ["1"], "v0": [0.0]}).to_csv(tmp_path / "x.csv", index=False)
    line = ["eval", "--embeddings", str(tmp_path / "x.csv"), "--tasks", TASK, "--push-to-hub", "--allow-missing"]
    line += ["--seen-in-pretraining", "none"]
    assert main([*line, "--output-dir", str(tmp_path / "out"), "--cache-dir", str(tmp_path / "cache")]) != 0
    assert "cannot contain embeddings from elsewhere" in capsys.readouterr().err and not list(
        (tmp_path / "out").rglob("*__cd.json")
    )
