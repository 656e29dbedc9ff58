"""Check that no marked ids, paths or tokens are in any byte sent by a client."""

import io
import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

from cardiobench.cli.main import main
from cardiobench.core.config import RunConfig
from cardiobench.core.console import Console
from cardiobench.core.errors import LicenceError
from cardiobench.data import catalog
from cardiobench.data.prepare import prepare
from cardiobench.data.twin import write_twin
from cardiobench.hub.after_run import push_all
from cardiobench.hub.outgoing import check_outgoing, clean_text, not_a_benchmark_score, public_result, public_settings
from cardiobench.results.context import ResultContext
from cardiobench.results.predictions_file import save_scored
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score
from tests.hub.conftest import ALICE
from tests.hub.results import MODEL, result

MARKS = ("MARKEDID", "MARKEDPATIENT", "MARKEDFOLDER", "MARKEDUSER", ALICE)


@pytest.fixture
def marked(tmp_path, monkeypatch):
    """Return results of a run with marked ids, folders and warnings; one patient has no prediction."""
    home = tmp_path / "MARKEDFOLDER" / "MARKEDUSER"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CARDIOBENCH_DATA", str(home / "raw"))
    rng = np.random.default_rng(0)
    names = [f"MARKEDID-{n}" for n in range(60)]
    truth = pd.DataFrame({"id": names, "patient_id": [f"MARKEDPATIENT-{n}" for n in range(60)], "split": "test"})
    truth["y_true"] = rng.normal(55, 10, 60)
    truth["sex"], truth["age"], truth["bmi"], truth["image_quality"] = "F", 50.0, 22.0, "Good"
    references = pd.concat([truth.assign(id=truth["id"] + "t", patient_id=truth["id"] + "t", split="train"), truth])
    task = catalog.task("camus/ef")
    answers = truth[["id"]].assign(y_pred=truth["y_true"] + 1.0)
    for name, rows in (("whole", answers), ("lacking", answers.iloc[:-1])):
        joined = Predictions.join(references, rows, task, allow_missing=True)
        scored = score(joined, references, ResultContext(resamples=50, protocol="probe", variant=name))
        folder = home / "results" / "m" / "r" / "probe"
        facts = {"name": str(home / "my_model"), "revision": "1", "loaded_by": f"weights in {home}/my_model/a.pt"}
        dataset = {"name": "camus", "version": "1.0.0", "digest": "d" * 16, "twin": False, "limit": None}
        local = replace(
            scored,
            model={**facts, "preprocessing": {"config": f"{home}/x.json", "fs": 500}},
            dataset=dataset,
            warnings=(*scored.warnings, f"MARKEDID-3 was odd, see {home}/log.txt or ~/log.txt"),
            options={"prompt_folder": str(home), "note": "C:\\MARKEDFOLDER\\x"},
            skipped_groups={"sex=M": "only MARKEDPATIENT-4."},
            stamp={**scored.stamp, "host": "MARKEDUSER-laptop", "key": "k"},
        )
        save_scored(local, joined.frame, folder / name / "camus__ef.json")
    return home


def everything(hub):
    """Return every byte sent, and all text in the resulting Parquet files and repositories."""
    parts = list(hub.sent)
    for repository in hub.store.repositories.values():
        for commit in repository.commits.values():
            parts += [commit.title.encode(), *(path.encode() for path in commit.files), *commit.files.values()]
            for path, content in commit.files.items():
                if path.endswith(".parquet"):
                    parts.append(json.dumps(pq.read_table(io.BytesIO(content)).to_pylist(), default=repr).encode())
    return b"\n".join(parts)


def test_no_marked_data_is_sent(marked, hub, client, capsys):
    hub.store.put("model", MODEL, {"README.md": b"# A model\n"})
    results, model = str(marked / "results"), str(marked / "my_model")
    line = ["push", results, "--include-rehearsals", "--yes"]
    for name in ("whole", "lacking"):
        one = ["push", str(marked / "results/m/r/probe" / name), "--include-rehearsals", "--yes"]
        assert main([*one, "--model", model, "--to", MODEL]) == 0
    assert main([*line, "--to-dataset", "org/results"]) == 2, "a local name"
    assert main([*line, "--model", model, "--as", "alice/mine", "--to-dataset", "org/results"]) == 0
    assert main(["publish", "datasets", "camus", "tmed2", "--yes", "--namespace", "org"]) == 0
    assert main(["publish", "metrics", "mae", "--yes", "--namespace", "org"]) == 0
    assert main(["publish", "models", "--yes", "--namespace", "org"]) == 0
    sent = everything(hub)
    assert b"probe.lacking" in sent and b"alice/mine" in sent and b"camus/ef" in sent
    found = [mark for mark in MARKS if mark.encode() in sent]
    assert not found, {mark: sent[max(0, sent.index(mark.encode()) - 200) :][:300] for mark in found}


@pytest.mark.slow
def test_no_command_sends_marked_data(marked, hub, client, capsys):
    """Ids of public recordings are not secret, but their location on this machine is."""
    hub.store.put("model", MODEL, {"README.md": b"# A model\n"})
    folder = marked / "results"
    saved = [ScoreResult.load(path) for path in sorted(folder.rglob("camus__ef.json"))]
    under_its_name = [replace(one, model={**one.model, "name": MODEL}) for one in saved]
    push_all(under_its_name, folder, Console())
    assert main(["leaderboard", str(folder), "--space", "org/board", "--yes"]) == 2, "a folder on this machine"
    assert main(["leaderboard", "org/results", "--space", "org/board", "--yes"]) == 0
    may = "--i-have-the-right"
    for name, rights in (("georgia", []), ("camus", ["--private", may]), ("hmc_qu", ["--gated", may])):
        write_twin(name, marked / "raw" / name, patients=4)
        prepare(name, marked / "raw" / name, marked / "prepared")
        line = ["publish", "datasets", name, "--prepared", str(marked / "prepared"), "--namespace", "org", "--yes"]
        assert main([*line, *rights]) == 0
    sent = everything(hub)
    assert b"org/results" in sent and hub.store.repository("dataset", "org/camus").private
    assert b"extra_gated_" in sent
    found = [mark for mark in MARKS if mark.encode() in sent]
    assert not found, {mark: sent[max(0, sent.index(mark.encode()) - 200) :][:300] for mark in found}


def test_public_result_names_source_checksum(marked):
    path = next((marked / "results").rglob("whole/camus__ef.json"))
    local = ScoreResult.load(path)
    shown = public_result(local, MODEL, ids=["MARKEDID-3"])
    assert shown.model["name"] == MODEL and shown.stamp["source_checksum"] == json.loads(path.read_text())["seal"]
    assert (
        ScoreResult.from_json(shown.to_json()).to_json() == shown.to_json()
    )  # Compare as JSON, because NaN is not equal to NaN in Python 3.13.
    assert public_result(shown, MODEL) is shown, "a published file keeps its checksum"
    assert public_result(result()).to_json() == result().to_json()


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("read from /home/ann/x.pt, twice", "read from (local path), twice"),
        ("at '/data/set one/y'", "at '(local path) one/y'"),
        ("(C:\\Users\\ann\\x)", "((local path))"),
        ("file:///tmp/x", "(local path)"),
        ("~/models/x and ../y", "(local path) and (local path)"),
        ("https://huggingface.co/org/model/blob/main/x", "https://huggingface.co/org/model/blob/main/x"),
        ("camus/ef 48/50, mV / s, p < .05", "camus/ef 48/50, mV / s, p < .05"),
        ("patient0012 and patient00123.", "(id) and patient00123."),
    ],
)
def test_texts(text, clean):
    assert clean_text(text, {"patient0012"}) == clean


def test_private_content_is_refused_from_any_source(client, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(LicenceError, match="your token"):
        check_outgoing("README.md", f"token {ALICE}".encode())
    with pytest.raises(LicenceError, match="home folder"):
        check_outgoing("x.json", f"{tmp_path}/x".encode())
    check_outgoing("x.json", b"/some/where/else")
    check_outgoing("x.parquet", Path(tmp_path / "absent.parquet"))


def test_result_of_a_deleted_extension_or_dataset_is_left_out_with_its_reason():
    (reason,) = not_a_benchmark_score(replace(result(), task="gone/cd"))
    assert reason == "no dataset or extension that is installed here has the task gone/cd"


def test_public_settings_hold_no_path_host_or_token(monkeypatch, tmp_path):
    """Test a mark in every field of the settings, so that new fields are covered."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "MARK_patient").mkdir()
    token = "hf_MARKabcdefghij"
    marked = {
        "models": ["MARK/anna/net.py:Mine", "/home/MARK/x/weights.pt", "./MARK_patient/../MARK_patient", "org/name"],
        "options": {
            "knn": {"folds": "/home/MARK/y/z"},
            "probe": {"note": f"{token} and ~/MARK/x", "grids": ["MARK/a.json", "/data/anna MARK/a.json"]},
        },
        "preprocessing": {"file": "/data/MARK/x", "nested": [{"a": "see '/data/MARK/x'"}]},
        "backend": "dask=tcp://MARK:8786",
        "tasks": ["/srv/MARK/a"],
        "variant": token,
    }
    kinds = {one.name: str(one.type) for one in fields(RunConfig)}
    paths = {name: Path("MARK/relative") for name, kind in kinds.items() if "Path" in kind}
    assert {"data_dir", "output_dir", "cache_dir", "weights", "prompts"} <= set(paths)
    text = yaml.safe_dump(public_settings(RunConfig(**marked, **paths)))
    assert "MARK" not in text.replace("- MARK_patient", "") and "org/name" in text and "local: net.py:Mine" in text
