"""Run every protocol from one command: figures, what does not apply, encoding counts, models that ignore their input."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.data import catalog
from cardiobench.models.baselines.constant import Constant
from cardiobench.protocols import list_protocols
from cardiobench.report import probe_gain
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.context import ResultContext
from cardiobench.results.score_result import Estimate, Floor, Judgement, ScoreResult
from cardiobench.runner.run import run
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score
from tests.models.tiny import tiny_open_clip

ANSWERING = ("zero_shot", "native", "probe", "knn")
OF_TASKS = ("few_shot", "prompt_sensitivity", "stress")
OF_DATASETS = ("frame_similarity", "retrieval")
STUDIES = ("alignment", *OF_TASKS, *OF_DATASETS)
EF, VIEW = "phantom_echo/ef", "phantom_echo/view"


@pytest.fixture
def config(tmp_path):
    return RunConfig(
        models=("cardiobench/constant",),
        tasks=(EF, VIEW),
        protocols=ANSWERING + STUDIES,
        output_dir=tmp_path / "results",
        cache_dir=tmp_path / "cache",
        resamples=40,
        limit=5,
        options={"stress": {"patients": 2}},
        workers=0,
    )


@pytest.mark.slow
@pytest.mark.usefixtures("figures")
def test_one_line_runs_every_protocol_and_draws_its_figures(config, tmp_path):
    model = str(tiny_open_clip(tmp_path / "org" / "clip"))
    outcome = run(dataclasses.replace(config, models=(model,), tasks=(EF,)))
    assert outcome.exit_code == 0
    assert {(result.protocol, result.variant) for result in outcome.results} == {
        *(("zero_shot", rule) for rule in ("per_frame_median", "rank_mean_median")),
        ("probe", ""),
        ("knn", ""),
    }
    assert [(name, protocol) for _, name, protocol, _ in outcome.not_applicable] == [(EF, "native")]
    assert {(record.protocol, record.subject) for record in outcome.analyses} == {
        *((name, EF) for name in ("alignment", *OF_TASKS)),
        *((name, "phantom_echo") for name in OF_DATASETS),
    }
    for record in outcome.analyses:
        (path,) = (file for file in outcome.files if file.suffix == ".json" and _of(record, file))
        assert AnalysisResult.load(path).tables.keys() == record.tables.keys()
        assert all(path.with_suffix(f".{name}.csv").is_file() for name in record.tables)
        drawn = [file for file in outcome.files if file.suffix == ".png" and _of(record, file)]
        assert drawn and all(file.stat().st_size > 5000 for file in drawn)
    prompts = next(result for result in outcome.results if result.protocol == "zero_shot").options
    assert len(prompts["prompt_digest"]) == 16
    page = (config.output_dir / "report.md").read_text()
    assert "From zero-shot to probe" in page and page.count("| per\\_frame\\_median |") == 1


def numbers_in(text):
    """Return the digits of a text as one number."""
    return int("0" + "".join(sign for sign in text if sign.isdigit()))


def _of(record, file):
    """Return whether a file belongs to a record."""
    subject = record.subject.replace("/", "__") if "/" in record.subject else f"across__{record.subject}"
    return file.parent.name == record.protocol and file.name.partition(".")[0] == subject


@pytest.mark.slow
def test_doctor_lists_what_does_not_apply(config):
    cheap = {"scratch": {"epochs": 1, "seeds": 1}}
    outcome = run(dataclasses.replace(config, protocols=("all",), options={**config.options, **cheap}))
    taken = {result.protocol for result in outcome.results} | {record.protocol for record in outcome.analyses}
    reasons = {(task, name.partition(".")[0]): reason for _, task, name, reason in outcome.not_applicable}
    # Transfer needs at least two datasets.
    assert taken | {name for _, name in reasons} == set(list_protocols()) - {"transfer"}
    for task in (EF, VIEW):
        assert "no text tower" in reasons[task, "zero_shot"] and "no text tower" in reasons[task, "prompt_sensitivity"]
        assert "no trained heads" in reasons[task, "native"]
    assert "no text tower" in reasons[EF, "alignment"] and "no text tower" in reasons["phantom_echo", "retrieval"]
    assert "no vectors of frames" in reasons["phantom_echo", "frame_similarity"]
    assert any("collapsed" in warning for result in outcome.results for warning in result.warnings)


@pytest.mark.slow
def test_model_that_ignores_its_input_is_flagged_in_every_protocol(config, monkeypatch):
    import torch

    monkeypatch.setattr(Constant, "logit_scale", 10.0, raising=False)
    # Texts differ, so that they span an axis; recordings do not.
    told = staticmethod(lambda texts: torch.tensor([[1.0 if numbers_in(text) > 50 else -1.0] for text in texts]))
    monkeypatch.setattr(Constant, "encode_text", told, raising=False)
    monkeypatch.setattr(Constant, "native", ("ef", "view"), raising=False)
    monkeypatch.setattr(
        Constant,
        "predict_native",
        lambda self, target, units: np.full((len(units), 6) if target == "view" else len(units), 1 / 6),
        raising=False,
    )
    # Two equal frames, so that their similarity is defined.
    monkeypatch.setattr(Constant, "transform", lambda self, recording: torch.ones(2, 1))
    monkeypatch.setattr(Constant, "frame_wise", True, raising=False)
    outcome = run(config)
    assert not outcome.not_applicable and not outcome.failures
    assert {result.protocol for result in outcome.results} == set(ANSWERING)
    for result in outcome.results:
        assert result.collapsed, result.protocol
        assert any("collapsed" in warning for warning in result.warnings)
        assert result.verdict.word != "above the floor"
    assert {record.protocol for record in outcome.analyses} == set(STUDIES)
    for record in outcome.analyses:
        assert any("collapsed" in warning for warning in record.warnings), record.protocol


@pytest.mark.slow
def test_every_clip_is_encoded_once(config, monkeypatch):
    seen = []
    real = Constant.encode
    monkeypatch.setattr(Constant, "encode", lambda self, parts: seen.extend(parts) or real(self, parts))
    quick = tuple(name for name in ANSWERING + STUDIES if name != "stress")
    run(dataclasses.replace(config, protocols=quick, options={}))
    frame = catalog.builder("phantom_echo").table(None).frame
    rows = {}
    for task in ("ef", "view"):
        part = frame[frame[task].notna()]
        part = part[part["view"].isin(("A2C", "A4C"))] if task == "ef" else part
        for _, own in part.groupby("split", sort=False):
            first = list(dict.fromkeys(own["patient_id"]))[: config.limit]
            rows |= dict.fromkeys(own.loc[own["patient_id"].isin(first), "id"])
    assert len(seen) == len(rows) + 1, "one part is encoded again to count operations"
    run(dataclasses.replace(config, protocols=quick, options={}, seed=5))
    assert len(seen) == len(rows) + 1, "another seed draws other folds from the same embeddings"


def counted(**classes):
    """Return a test split with as many units of each class as the published split, each of a patient of its own."""
    truth = [name for name, count in classes.items() for _ in range(count)]
    ids = [f"unit{number}" for number in range(len(truth))]
    return pd.DataFrame({"id": ids, "patient_id": ids, "split": "test", "y_true": truth})


def constant_answers(task, answer, references):
    answers = pd.DataFrame({"id": references["id"], "y_pred": answer})
    return score(Predictions.join(references, answers, catalog.task(task)), references, ResultContext(resamples=50))


def test_constant_on_tmed2_equals_paper_and_is_flagged():
    result = constant_answers("tmed2/as", "AS", counted(no_AS=25, AS=94))
    assert round(100 * result.score.value, 2) == 44.13 and result.score.n == 119
    assert result.collapsed and result.verdict.word == "no information shown"
    assert result.floors["best_constant"].value == result.score.value


def test_tmed2_views_are_scored_over_present_ones():
    """Check that macro F1 uses five views, as no label is A3C. All 'Other' (1498 of 3602): 2 x 1498 / (1498 + 3602) / 5."""
    result = constant_answers("tmed2/view", "Other", counted(A2C=297, A4C=430, PSAX=383, PLAX=994, Other=1498))
    assert result.score.n == 3602 and result.collapsed
    assert result.score.value == pytest.approx(2 * 1498 / (1498 + 3602) / 5)


def score_result(task, protocol, value):
    floor = Floor(0.3, "AS")
    return ScoreResult(
        task=task,
        metric="f1_macro",
        higher_is_better=True,
        unit="",
        overall={"f1_macro": Estimate(value, value - 0.1, value + 0.1, 50, 50)},
        floors={"best_uninformed": floor, "best_constant": floor, "train_constant": floor, "chance": floor},
        verdict=Judgement("above the floor", "a sentence", 0.2, 0.1, 0.3),
        collapsed=False,
        coverage={"scored": 50, "expected": 50},
        model={"name": "org/m"},
        protocol=protocol,
    )


def test_deltas_pair_a_models_own_results():
    zero_shot, probe = (
        score_result("tmed2/as", protocol, value) for protocol, value in (("zero_shot", 0.4), ("probe", 0.7))
    )
    (row,) = probe_gain.probe_gain_rows([zero_shot, probe])
    assert row[4:] == ("40.00", "70.00", "30.00")
    assert probe_gain.probe_gain_rows([probe]) == [] and probe_gain.markdown([zero_shot]) == ""
