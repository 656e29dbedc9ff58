"""Test external embeddings: bitwise equal results, a separate condition, and no stale results."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cardiobench
from cardiobench.cli.main import main
from cardiobench.core.errors import BadConfig, BadData, NoResult, NotApplicable
from cardiobench.data.open import open_dataset
from cardiobench.data.twin import write_twin
from cardiobench.embeddings.cached import export_stores, find_stores
from cardiobench.protocols import list_protocols
from cardiobench.results.formatting import flags
from cardiobench.results.record import EMBEDDINGS

SAMPLE = "ptb_xl_sample/cd"
MODEL = "cardiobench/ecg-morphology"
NOT_SEEN = "embeddings from elsewhere: how they were made was not seen"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a model's results on the bundled ECGs, and its embeddings as a file."""
    root = tmp_path_factory.mktemp("made")
    results = evaluate(root, MODEL, protocols=("probe", "knn"))
    export_stores(find_stores(root / "cache"), root / "x.parquet")
    return root, results


def evaluate(root, model=(), tasks=SAMPLE, protocols="knn", **more):
    folders = {"output_dir": root / "out", "cache_dir": root / "cache"}
    return cardiobench.evaluate(model, tasks, protocols, **{"workers": 0, "resamples": 50, **folders, **more})


@pytest.fixture
def frame(made):
    return pd.read_parquet(made[0] / "x.parquet").drop(columns=["part", "dataset"])


def scores(result):
    """Return all content of a result except its origin."""
    record = result.to_json()
    return {name: value for name, value in record.items() if name not in ("model", "stamp", "seal", "warnings", "cost")}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".parquet", ".npz", ".csv"])
def test_exported_embeddings_give_the_same_bits(made, tmp_path, suffix):
    root, own = made
    file = tmp_path / f"x{suffix}"
    export_stores(find_stores(root / "cache", MODEL), file)
    given = evaluate(
        tmp_path, embeddings=file, protocols=("probe", "knn"), model_name="lab/net", seen_in_pretraining="none"
    )
    for one, other in zip(own, given, strict=True):
        assert scores(one) == scores(other)
        assert set(other.warnings) - set(one.warnings) == {NOT_SEEN}
    ours, theirs = (sorted(folder.rglob("*.predictions.parquet")) for folder in (root / "out", tmp_path / "out"))
    assert [path.read_bytes() for path in ours] == [path.read_bytes() for path in theirs]


@pytest.mark.slow
@pytest.mark.skipif("attention_probe" not in list_protocols(), reason="a feature that was deleted here")
def test_parts_and_their_pooling_survive_the_round_trip(tmp_path):
    run = {"tasks": "phantom_echo/ef", "protocols": ("probe", "attention_probe"), "limit": 12}
    own = evaluate(tmp_path / "own", "cardiobench/random-vit", **run)
    export_stores(find_stores(tmp_path / "own" / "cache"), tmp_path / "x.npz")
    given = evaluate(tmp_path / "given", embeddings=tmp_path / "x.npz", **run)
    assert [scores(one)["overall"] for one in own] == [scores(one)["overall"] for one in given]
    assert {one.model["pooling"] for one in given} == {"mean_l2"}
    other = evaluate(
        tmp_path / "given", embeddings=tmp_path / "x.npz", poolings="mean", **{**run, "protocols": "probe"}
    )
    assert scores(other[0])["overall"] != scores(own[0])["overall"]


@pytest.mark.slow
def test_result_states_its_source(made, frame, tmp_path):
    (result,) = evaluate(tmp_path, embeddings=frame, model_name="lab/net")
    assert result.given_embeddings and result.model["loaded_by"] == EMBEDDINGS and NOT_SEEN in result.warnings
    assert flags(result)[0] == EMBEDDINGS and not made[1][0].given_embeddings
    assert result.seen_in_pretraining is None
    assert NOT_SEEN in str(result) and result.stamp["device"] == "unknown" and result.stamp["libraries"] == {}
    (said,) = evaluate(tmp_path, embeddings=frame, model_name="lab/net2", seen_in_pretraining="ptb_xl_sample")
    assert said.seen_in_pretraining is True


def test_vectors_with_equal_names_are_not_confused(frame, tmp_path):
    first = evaluate(tmp_path, embeddings=frame, model_name="lab/net")[0]
    again = evaluate(tmp_path, embeddings=frame.iloc[::-1], model_name="lab/net")[0]
    assert again.stamp["key"] == first.stamp["key"] and again.stamp["date"] == first.stamp["date"]
    changed = frame.assign(vector=list(np.random.default_rng(0).normal(size=(len(frame), 5))))
    other = evaluate(tmp_path, embeddings=changed, model_name="lab/net")[0]
    assert other.stamp["key"] != first.stamp["key"] and other.stamp["embeddings"] != first.stamp["embeddings"]
    assert other.score.value != first.score.value
    assert len(list((tmp_path / "out" / "lab__net").iterdir())) == 2


@pytest.mark.slow
def test_file_that_changed_is_read_again(made, tmp_path, capsys):
    root, _ = made
    line = [
        "eval",
        "--embeddings",
        str(tmp_path / "x.csv"),
        "--tasks",
        SAMPLE,
        "--protocols",
        "knn",
        "--resamples",
        "20",
        "--seen-in-pretraining",
        "none",
    ]
    line += ["--output-dir", str(tmp_path / "out"), "--cache-dir", str(tmp_path / "cache"), "--json"]
    table = pd.read_csv(export_csv(root, tmp_path), dtype={"id": str})
    found = []
    for value in (0.0, 1e6):
        table.assign(v3=table["v3"] + value * np.arange(len(table))).to_csv(tmp_path / "x.csv", index=False)
        for _ in range(2):
            assert main(line) == 0
            found.append(json.loads(capsys.readouterr().out))
    assert [one["from_earlier_run"] for one in found] == [[], [0], [], [0]]
    first, _, second, _ = (one["results"][0]["overall"]["f1_macro"]["value"] for one in found)
    assert first != second


def export_csv(root, tmp_path):
    export_stores(find_stores(root / "cache", MODEL), tmp_path / "x.csv")
    return tmp_path / "x.csv"


@pytest.mark.slow
def test_run_yaml_repeats_it(made, tmp_path, capsys):
    file = export_csv(made[0], tmp_path)
    folders = ["--output-dir", str(tmp_path / "out"), "--cache-dir", str(tmp_path / "cache")]
    line = ["eval", "--embeddings", str(file), "--tasks", SAMPLE, "--protocols", "knn", "--model-name", "lab/net"]
    assert main([*line, "--resamples", "20", "--seen-in-pretraining", "none", *folders]) == 0
    (settings,) = (tmp_path / "out" / "runs").rglob("run.yaml")
    capsys.readouterr()
    assert main(["rerun", str(settings), "--json", *folders]) == 0
    assert json.loads(capsys.readouterr().out)["from_earlier_run"] == [0]


def test_one_message_counts_missing_and_unknown(frame, tmp_path):
    odd = pd.concat([frame.iloc[5:], frame.iloc[[6]].assign(id="stranger"), frame.iloc[[9]]])
    with pytest.raises(BadData) as error:
        evaluate(tmp_path, embeddings=odd)
    assert "1 id repeated" in str(error.value)
    with pytest.raises(
        BadData, match=r"5 of the 393 recordings of ptb_xl_sample are missing: .* 1 of 389 ids are none of"
    ):
        evaluate(tmp_path, embeddings=odd.iloc[:-1])
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").rglob("*__*.json"))


@pytest.mark.slow
def test_allowed_missing_recordings_lower_coverage(frame, tmp_path):
    ids = open_dataset("ptb_xl_sample", None, need_media=False).frame.groupby("split")["id"].agg(list)
    some = frame[~frame["id"].isin([*ids["test"][:3], ids["validation"][0]])]
    results = evaluate(tmp_path, embeddings=some, allow_missing=True)
    assert (results[0].scored, results[0].expected) == (119, 122) and "incomplete" in flags(results[0])
    assert evaluate(tmp_path, embeddings=some, allow_missing=True)[0].stamp["key"] == results[0].stamp["key"]
    assert evaluate(tmp_path, embeddings=frame)[0].stamp["key"] != results[0].stamp["key"]


def test_standardisation_by_split_gives_a_warning(frame, tmp_path):
    split = open_dataset("ptb_xl_sample", None, need_media=False).frame.set_index("id")["split"]
    values, groups = np.stack(frame["vector"]), split.loc[frame["id"]].to_numpy()
    for name in np.unique(groups):
        part = values[groups == name]
        values[groups == name] = (part - part.mean(axis=0)) / np.where(part.std(axis=0) > 0, part.std(axis=0), 1)
    (result,) = evaluate(tmp_path, embeddings=frame.assign(vector=list(values)))
    assert any("test rows look standardised separately from the training rows" in one for one in result.warnings)


@pytest.mark.slow
def test_several_datasets_need_a_dataset_column(frame, tmp_path):
    with pytest.raises(BadConfig, match="does not say which of ptb_xl_sample, phantom_ecg"):
        evaluate(tmp_path, embeddings=frame, tasks=[SAMPLE, "phantom_ecg/cd"])
    ids = open_dataset("phantom_ecg", None, need_media=False).frame["id"]
    drawn = np.random.default_rng(0).normal(size=(len(ids), len(frame["vector"].iloc[0]))).astype(np.float32)
    both = pd.concat(
        [
            frame.assign(dataset="ptb_xl_sample"),
            pd.DataFrame({"id": ids, "vector": list(drawn), "dataset": "phantom_ecg"}),
        ]
    )
    results = evaluate(tmp_path, embeddings=both, tasks=[SAMPLE, "phantom_ecg/cd"])
    assert {one.task for one in results} == {SAMPLE, "phantom_ecg/cd"}
    with pytest.raises(BadConfig, match="names datasets that do not exist: camu"):
        evaluate(tmp_path, embeddings=both.assign(dataset="camu"), tasks=[SAMPLE])


def test_recordings_are_not_needed(tmp_path, monkeypatch):
    """Return PTB-XL with its tables only."""
    from tests.runner.test_external_predictions import copy_of_ptb_xl

    dataset = copy_of_ptb_xl(60)
    dataset = replace(dataset, table=replace(dataset.table, missing=("a.dat", "b.dat"), absent={}))
    monkeypatch.setattr("cardiobench.runner.plan.open_dataset", lambda *_, **__: dataset)
    ids = dataset.frame["id"]
    drawn = pd.DataFrame(np.random.default_rng(0).normal(size=(len(ids), 4)), columns=["v0", "v1", "v2", "v3"])
    results = evaluate(tmp_path, tasks="ptb_xl/super", embeddings=drawn.assign(id=list(ids)))
    assert len(results) == 1
    facts = results[0].dataset
    assert facts["missing_files"] == 0 and "digest" not in facts and facts["references_digest"]
    assert not any("files of the release" in one for one in results[0].warnings)


def test_protocols_that_need_a_model_are_not_applicable(made, tmp_path):
    root, _ = made
    wanted = [name for name in ("zero_shot", "native", "stress", "dense") if name in list_protocols()]
    with pytest.raises(NotApplicable, match="has no pooling 'max'"):
        evaluate(tmp_path, embeddings=root / "x.parquet", poolings="max")
    with pytest.raises(NoResult, match=r"^x has no result: "):
        evaluate(tmp_path, embeddings=root / "x.parquet", protocols=wanted)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"tasks": ()}, "embeddings needs tasks"),
        ({"model_name": "../.."}, "names no folder"),
        ({"model_name": "a\nb"}, "one line"),
        ({"model_name": MODEL, "seen_in_pretraining": "ptb_xl_sample"}, "the card of cardiobench/ecg-morphology says"),
    ],
)
def test_conflicting_settings_are_refused(made, tmp_path, settings, said):
    with pytest.raises(BadConfig, match=said):
        evaluate(tmp_path, **{"embeddings": made[0] / "x.parquet", **settings})


def test_name_without_embeddings_is_refused(capsys, tmp_path):
    assert main(["eval", "--model", MODEL, "--model-name", "x", "--output-dir", str(tmp_path)]) == 2
    assert "--model-name describes the file of --embeddings or --predictions" in capsys.readouterr().err


@pytest.mark.slow
def test_together_with_a_model(made, tmp_path):
    results = evaluate(tmp_path, "cardiobench/constant", embeddings=made[0] / "x.parquet", model_name="lab/net")
    assert [one.model["name"] for one in results] == ["cardiobench/constant", "lab/net"]


def test_dry_run_encodes_nothing(made, tmp_path, capsys):
    folders = ["--output-dir", str(tmp_path / "out"), "--cache-dir", str(tmp_path / "cache")]
    line = ["eval", "--embeddings", str(made[0] / "x.parquet"), "--tasks", SAMPLE, "--dry-run", "--json", *folders]
    line += ["--seen-in-pretraining", "none"]
    assert main(line) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["to_encode"] == 0 and row["cells"] > 0


@pytest.mark.slow
def test_pytorch_is_not_imported(tmp_path):
    """Run all vector-based protocols on two datasets while PyTorch cannot be imported."""
    frames = {}
    for name in ("georgia", "chapman_ningbo"):
        write_twin(name, tmp_path / "data" / name, patients=60)
        ids = open_dataset(name, tmp_path / "data", need_media=False).frame["id"]
        drawn = np.random.default_rng(0).normal(size=(len(ids), 5)).astype(np.float32)
        frames[name] = pd.DataFrame({"id": ids, "vector": list(drawn), "dataset": name})
    pd.concat(frames.values()).to_parquet(tmp_path / "x.parquet")
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise ImportError('poisoned torch')")
    made = ("probe", "knn", "few_shot", "transfer", "representation", "confound", "cross_validation")
    chosen = sorted({*made, "stress", "zero_shot"} & {*list_protocols()})
    few = ["probe.comparison_refits=2", "knn.comparison_refits=2"]
    if {"cross_validation", "representation"} <= {*chosen}:
        few += ["cross_validation.sizes=XS", "cross_validation.classifiers=logistic"]
        few += ["representation.classifiers=logistic"]
    line = ["-m", "cardiobench.cli", "eval", "--embeddings", "x.parquet", "--data-dir", "data", "--resamples", "20"]
    line += [
        "--tasks",
        *(f"{name}/cd" for name in frames),
        "--protocols",
        *chosen,
        "--option",
        *few,
        "--seen-in-pretraining",
        "none",
    ]
    path = os.pathsep.join([str(tmp_path), str(Path(cardiobench.__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, *line, "--output-dir", "out", "--cache-dir", "cache"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "poisoned" not in done.stderr, done.stderr
    found = {file.parent.name.partition(".")[0] for file in (tmp_path / "out" / "x").rglob("*.json")}
    assert found == {*made} & {*chosen}
