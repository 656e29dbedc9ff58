"""Test that no path scores a model on a target that it receives as input."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import NotApplicable
from cardiobench.data import catalog
from cardiobench.data.media import METADATA
from cardiobench.leaderboard.verify import check
from cardiobench.models.baselines.metadata import Metadata
from cardiobench.models.cards import card
from cardiobench.models.facts import without_network
from cardiobench.models.load import load_model
from cardiobench.protocols import list_protocols, protocol
from cardiobench.results.collect import ResultEntry, collect
from cardiobench.results.consistency import check_consistency
from cardiobench.results.context import ResultContext
from cardiobench.runner.run import run
from cardiobench.scoring.external_model import describe_model
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score
from tests.acceptance.encoders import Leads, Thumbnails

TASKS = {"phantom_echo": Thumbnails, "ptb_xl_sample/cd": Leads}
SEX = catalog.task("georgia/sex")
REASON = r"cardiobench/metadata receives the sex that georgia/sex is about"


TARGETS = ("ef", "view", "lv_seg", "landmarks", "cd")


def told(kind):
    """Return an encoder that declares the targets of all of these tasks as input."""
    return type("Told", (kind,), {"given": TARGETS, "name": "toy/told"})()


@pytest.mark.parametrize("asked", [pytest.param("phantom_echo", marks=pytest.mark.slow), "ptb_xl_sample/cd"])
def test_no_protocol_evaluates_given_targets(asked, tmp_path):
    tasks = catalog.spec(asked).tasks if "/" not in asked else (catalog.task(asked),)
    names = [name for name in list_protocols() if protocol(name).takes("", tasks)]
    config = RunConfig(
        tasks=(asked,),
        protocols=tuple(names),
        output_dir=tmp_path / "results",
        cache_dir=tmp_path / "cache",
        limit=3 if asked == "phantom_echo" else None,
        workers=0,
        resamples=20,
        jobs=1,
    )
    outcome = run(config, encoders=[told(TASKS[asked])])
    assert not outcome.results and not outcome.analyses and not outcome.failures
    assert not list(tmp_path.rglob("results/*/*/*/*.json"))
    reasons = {}
    for _, _, label, reason in outcome.not_applicable:
        reasons.setdefault(label.partition(".")[0], []).append(reason)
    refused = {name for name, found in reasons.items() if any("toy/told receives the" in one for one in found)}
    suitable = {"phantom_echo": ("probe", "knn", "native", "zero_shot", "dense", "representation")}
    suitable["ptb_xl_sample/cd"] = ("probe", "knn", "native", "cross_validation", "representation")
    assert refused >= set(suitable[asked]) & set(names)


def references(task):
    rows = [(f"r{n}", f"p{n}", "test", task.classes[n % 2]) for n in range(40)]
    return pd.DataFrame(rows, columns=["id", "patient_id", "split", "y_true"])


def sex_result(model):
    table = references(SEX)
    answers = table.rename(columns={"y_true": "y_pred"})[["id", "y_pred"]]
    joined = Predictions.join(table, answers, SEX)
    return score(joined, table, ResultContext(protocol="cross_validation", model=model, resamples=50))


def test_scoring_refuses_given_targets():
    with pytest.raises(NotApplicable, match=REASON):
        sex_result(load_model("cardiobench/metadata").facts)
    with pytest.raises(NotApplicable, match=REASON):
        sex_result(describe_model(SEX, model_name="cardiobench/metadata")["model"])


def test_collection_lists_result_on_given_target_as_problem(tmp_path):
    honest = sex_result({"name": "lab/net"})
    leaked = replace(honest, model={"name": "cardiobench/metadata", "given": ["age", "sex"]})
    assert not check_consistency(honest)
    assert check_consistency(leaked) == ["cardiobench/metadata receives the sex that georgia/sex is about"]
    leaked.save(tmp_path / "a" / "1" / "cross_validation" / "georgia__sex.json")
    (problem,) = collect([tmp_path]).problems
    assert "receives the sex" in problem.message


@pytest.mark.parametrize("stated", [{}, {"given": ["sex"]}])
def test_verification_refuses_given_targets(stated):
    claimed = replace(sex_result({"name": "lab/net"}), model={"name": "cardiobench/metadata", **stated})
    claimed = replace(claimed, protocol="probe", variant="")
    assert any(
        "receives the sex" in one for one in check(ResultEntry(Path("x.json"), claimed, pushed_by="bob"), {}).problems
    )


def test_card_encoder_and_worker_state_the_same_facts():
    model = load_model("cardiobench/metadata")
    assert set(card("cardiobench/metadata").given) == set(Metadata.given) == set(METADATA) == model.given
    assert without_network(model).given == model.given
    assert model.facts["given"] == sorted(METADATA)
