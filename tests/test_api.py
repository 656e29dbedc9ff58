"""Check that the Python API gives the same results as the command line."""

import ast
from pathlib import Path

import pandas as pd
import pytest

import cardiobench
from cardiobench.core.errors import BadPredictions, UnknownName


def test_names():
    for name in cardiobench.__all__:
        assert callable(getattr(cardiobench, name)), name
    assert cardiobench.__version__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        cardiobench.nothing  # noqa: B018


def test_type_checkers_see_the_names_of_the_package():
    stub = ast.parse(Path(cardiobench.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = {one.names[0].asname: one.module for one in stub.body if isinstance(one, ast.ImportFrom)}
    assert imports == cardiobench._LAZY


def test_evaluate(tmp_path):
    (result,) = cardiobench.evaluate(
        "cardiobench/constant",
        ["ptb_xl_sample/cd"],
        ["probe"],
        output_dir=str(tmp_path / "results"),
        cache_dir=str(tmp_path / "cache"),
        workers=0,
        resamples=50,
    )
    assert result.collapsed and result.task == "ptb_xl_sample/cd"


@pytest.fixture
def references():
    from cardiobench.data import open_dataset

    source = open_dataset("ptb_xl_sample")
    return source.references(source.spec.task("cd"))


def test_score_and_compare(references, tmp_path):
    test = references[references["split"] == "test"]
    right = pd.DataFrame({"id": test["id"], "y_pred": test["y_true"]})
    wrong = right.assign(y_pred=["CD" if label == "no CD" else "no CD" for label in test["y_true"]])
    assert cardiobench.score(right, "ptb_xl_sample/cd", references).score.value == 1
    assert cardiobench.score(wrong, "ptb_xl_sample/cd", references).score.value == 0
    difference = cardiobench.compare(right, wrong, "ptb_xl_sample/cd", references)
    assert difference.difference == 1 and difference.p_value < 0.01
    right.to_csv(tmp_path / "mine.csv", index=False)
    references.to_csv(tmp_path / "refs.csv", index=False)
    assert cardiobench.score(tmp_path / "mine.csv", "ptb_xl_sample/cd", tmp_path / "refs.csv").score.value == 1
    with pytest.raises(BadPredictions, match=r"121 of the 122"):
        cardiobench.score(right[1:], "ptb_xl_sample/cd", references)


def test_frames_are_read_like_files(references):
    whole_numbers = {name: number for number, name in enumerate(references["id"])}
    frame = references.assign(
        id=references["id"].map(whole_numbers),
        patient_id=pd.factorize(references["patient_id"])[0],
        y_true=references["y_true"].eq("CD"),
    )
    test = frame[frame["split"] == "test"]
    answers = pd.DataFrame({"prob_cd": test["y_true"].astype(float)}).set_index(test["id"])
    result = cardiobench.score(answers, "ptb_xl_sample/cd", frame.set_index("id", drop=False))
    assert result.score.value == 1 and result.score.n_patients == test["patient_id"].nunique()
    assert frame["id"].dtype.kind == "i", "the caller's frame is unchanged"


def test_load_metric_and_dataset():
    assert cardiobench.load_metric("mae").compute(references=[1.0, 2.0], predictions=[2.0, 4.0]) == {"mae": 1.5}
    with pytest.raises(UnknownName, match="Did you mean 'mae'"):
        cardiobench.load_metric("mea")
    dataset = cardiobench.load_dataset("cardiobench/ptb_xl_sample", split="test")
    assert len(dataset) == 122 and dataset.features["cd"].names == ["no CD", "CD"]
