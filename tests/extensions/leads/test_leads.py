"""Test ECGs with fewer leads: refusals, model inputs, and which results are compared."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from cardiobench.cli.eval import build_parser, read_settings
from cardiobench.core import plugins
from cardiobench.core.config import RunConfig
from cardiobench.core.console import Console
from cardiobench.core.errors import BadConfig, CardioBenchError, NotApplicable
from cardiobench.data import catalog
from cardiobench.data.media.types import LEADS, Ecg
from cardiobench.data.open import open_dataset
from cardiobench.embeddings.vector_files import write_vectors
from cardiobench.extensions.leads import condition, figures
from cardiobench.extensions.leads.lead_set import parse_leads
from cardiobench.extensions.leads.loss import split_label
from cardiobench.hub.eval_results import primary_protocol
from cardiobench.hub.naming import SAFE
from cardiobench.leaderboard.rebuild import has_variant
from cardiobench.leaderboard.table import scores
from cardiobench.models.custom import BaseEncoder, loaded
from cardiobench.protocols import protocol
from cardiobench.protocols.base import ProtocolOutput
from cardiobench.report.markdown import write_markdown
from cardiobench.report.plots.style import LINE_HEIGHT
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.collect import collect
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.dry_run import dry_run
from cardiobench.runner.run import run

TASK = "mine/planted"
KNOWN = "I, II, III, aVR, aVL, aVF, V1, V2, V3, V4, V5, V6"


class Spread(BaseEncoder):
    """Model that returns the spread of each lead and needs all twelve."""

    name = "toy/spread"
    sampling_rate = None

    def transform(self, recording: Ecg) -> torch.Tensor:
        """Return the standard deviation of each lead. The shape is (1, 12)."""
        return torch.from_numpy(recording.signal.std(axis=0))[None]

    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        """Return the parts unchanged."""
        return parts.float()


class FirstLead(Spread):
    """Model that returns the spread of lead I, its only input."""

    name = "toy/first-lead"
    leads = ("I",)


class AnyLeads(Spread):
    """Model that returns the spread of any leads, each at the position of its name."""

    name = "toy/any-leads"

    def with_leads(self, leads):
        """Return the model restricted to these leads."""
        fewer = AnyLeads()
        fewer.leads = tuple(leads)
        return fewer

    def transform(self, recording: Ecg) -> torch.Tensor:
        """Return the spread of the model's leads. The shape is (1, leads)."""
        return super().transform(recording)[:, [LEADS.index(lead) for lead in self.leads]]


def load(encoder):
    return loaded(encoder, "given", "fp32", torch.device("cpu"))


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """Return a dataset of 90 patients, `mine`, whose label is the amplitude of V1."""
    rng = np.random.default_rng(4)
    folder = tmp_path / "own" / "mine"
    (tmp_path / "raw").mkdir()
    folder.mkdir(parents=True)
    labels = np.arange(90) % 2
    for number, label in enumerate(labels):
        signal = rng.normal(size=(200, 12)).astype(np.float32) * rng.uniform(0.8, 1.2, 12).astype(np.float32)
        signal[:, 6] *= 1 + 1.5 * label
        np.save(tmp_path / "raw" / f"{number}.npy", signal)
    write_dataset(folder, tmp_path / "raw", labels, LEADS)
    monkeypatch.setenv(plugins.VARIABLES["hf_datasets"], str(tmp_path / "own"))
    return tmp_path


def write_dataset(folder, raw, labels, leads):
    """Write `dataset.yaml` and its tables, as `adopt` does."""
    names = [str(number) for number in range(len(labels))]
    split = np.where(np.arange(len(labels)) < 50, "train", "test")
    table = {"id": names, "patient_id": names, "split": split, "file": [f"{name}.npy" for name in names]}
    pd.DataFrame(table).to_csv(folder / "splits.csv", index=False)
    pd.DataFrame({"id": names, "planted": labels}).to_csv(raw / "labels.csv", index=False)
    (folder / "dataset.yaml").write_text(
        f"""\
schema: 1
name: {folder.name}
title: Planted
version: '1'
modality: ecg
recordings: {{folder: {raw}, format: npy, leads: [{", ".join(leads)}], sampling_rate: 100, unit: mV}}
labels: {{file: {raw}/labels.csv, id: id}}
tasks:
  planted: {{kind: binary, column: planted, classes: ['0', '1']}}
"""
    )


def settings(folder, **changes):
    known = {"tasks": (TASK,), "protocols": ("knn",), "resamples": 50, "workers": 0, "models": ()}
    return RunConfig(**{**known, "output_dir": folder / "results", "cache_dir": folder / "cache", **changes})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", f"--condition leads: no lead is named. Give some of {KNOWN}"),
        ("=V7", f"no lead 'V7'. The leads are {KNOWN}"),
        ("=i", "no lead 'i'"),
        ("=I,,II", "no lead ''"),
        ("=I,II,I", f"lead I is named twice. Name each of {KNOWN} at most once"),
        ("=V1,II", f"give the leads in the order {KNOWN}. Write leads=II,V1"),
        (f"={','.join(LEADS)}", "these are all twelve leads. Leave the condition out"),
        ("=", "expected NAME or NAME=VALUE"),
    ],
)
def test_invalid_lead_sets_are_refused_before_any_work(tmp_path, value, message):
    config = settings(
        tmp_path, models=("cardiobench/constant",), tasks=("ptb_xl_sample/cd",), conditions=f"leads{value}"
    )
    with pytest.raises(CardioBenchError, match=message):
        run(config)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"tasks": ("ptb_xl_sample/cd", "phantom_echo/ef")},
            "leads=I does not apply to phantom_echo/ef. Remove these",
        ),
        (
            {"protocols": ("knn", "few_shot")},
            "leads=I changes recordings, and few_shot describe the recordings unchanged",
        ),
    ],
)
def test_echo_and_analyses_are_refused(tmp_path, changes, message):
    known = {"models": ("cardiobench/constant",), "tasks": ("ptb_xl_sample/cd",)}
    if "few_shot" in str(changes):
        pytest.importorskip("cardiobench.extensions.few_shot")
    with pytest.raises(BadConfig, match=message):
        run(settings(tmp_path, **{**known, **changes}, conditions="leads=I"))


def test_run_of_all_tasks_selects_ecg_tasks(tmp_path):
    from cardiobench.runner.run import resolve

    request = resolve(settings(tmp_path, models=("cardiobench/constant",), tasks=(), conditions="leads=I"))
    assert {catalog.modality(task) for task in request.tasks} == {"ecg"}


def test_lead_names_are_taken_as_typed():
    arguments = build_parser().parse_args(["--model", "a/b", "--condition", "leads=I,II,III,aVR,aVL,aVF"])
    assert read_settings(arguments).conditions == ("leads=I,II,III,aVR,aVL,aVF",)
    asked = parse_leads("I,II,III,aVR,aVL,aVF")
    assert asked.independent == 2 and asked.absent == LEADS[6:]
    ranks = {"III": 1, "I,III": 2, "III,aVR,aVF": 2, "II,V1,V5": 3, "I,II,III,V1": 3}
    assert {value: parse_leads(value).independent for value in ranks} == ranks, "two limb leads determine the others"
    assert split_label("probe.leads=I,II") == ("probe", parse_leads("I,II"))
    assert split_label("knn.k=3.leads=V1+zero_filled.other") == ("knn.k=3.other", parse_leads("V1+zero_filled"))
    assert split_label("probe.leads=V7") == ("probe.leads=V7", None)


@pytest.mark.slow
def test_models_take_fewer_leads_natively_or_get_zeros():
    spread, first, any_leads = load(Spread()), load(FirstLead()), load(AnyLeads())
    zeros = condition.model(spread, "I,II")
    assert zeros.preprocessing == {
        "leads": "I II",
        "leads_taken": "zero-filled",
        "leads_computed": "III aVR aVL aVF",
        "leads_zero": "V1 V2 V3 V4 V5 V6",
    }
    assert "III, aVR, aVL, aVF are computed from I and II and add no information" in zeros.warnings[-1]
    assert "V6 are zeros after" in zeros.warnings[-1]
    assert condition.model(first, "I,V1").preprocessing["leads_taken"] == "native"
    native = condition.model(any_leads, "II,V1")
    assert native.encoder.leads == ("II", "V1") and native.preprocessing == {"leads": "II V1", "leads_taken": "native"}
    assert condition.model(any_leads, "II,V1+zero_filled").preprocessing["leads_taken"] == "zero-filled"
    ecg = Ecg(np.random.default_rng(0).normal(size=(50, 12)).astype(np.float32), 100.0)
    assert np.flatnonzero(zeros.change(ecg).signal.any(axis=0)).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("V1", "toy/first-lead takes I, none of which can be obtained from V1"),
        ("I+zero_filled", "toy/first-lead takes only I, and has no lead to fill with zeros"),
    ],
)
def test_model_that_cannot_take_the_leads_is_not_applicable(value, message):
    with pytest.raises(NotApplicable, match=message):
        condition.model(load(FirstLead()), value)


def test_given_embeddings_cannot_use_fewer_leads(tmp_path):
    path = tmp_path / "vectors.parquet"
    write_vectors(path, [("ptb_xl_sample", "x")], np.array([0, 1]), np.ones((1, 3), np.float32), {"model": "toy/given"})
    with pytest.raises(
        NotApplicable, match=r"embeddings of .* were supplied, but --condition leads=I changes the recordings"
    ):
        run(settings(tmp_path, embeddings=path, tasks=("ptb_xl_sample/cd",), conditions="leads=I"))


@pytest.mark.slow
@pytest.mark.usefixtures("figures")
def test_label_in_one_lead_needs_that_lead(planted):
    """Test a label that is only visible in V1."""
    whole = run(settings(planted), encoders=(Spread(),)).results[0]
    summary = run(settings(planted, conditions="leads=I,II"), encoders=(Spread(),))
    (limb,), (record,) = summary.results, summary.analyses
    assert whole.verdict.word == "above the floor" and whole.score.value > 0.75
    assert limb.verdict.word == "no information shown" and limb.score.low < limb.floor.value < limb.score.high
    loss = record.values["knn, I II (zero-filled): loss of f1_macro"]
    assert loss.value == pytest.approx(whole.score.value - limb.score.value)
    assert 0 < loss.low < loss.value < loss.high and loss.n_patients == 40
    (path,) = planted.glob("results/*/*/leads/mine__planted.json")
    assert AnalysisResult.load(path).protocol == "leads" and path.with_name("mine__planted.leads.png").is_file()


@pytest.mark.slow
def test_results_of_fewer_leads_are_separate_and_compared(planted):
    """Check results, embeddings, ranks, pages and costs of lead sets."""
    whole = settings(planted)
    models = (Spread(), AnyLeads())
    run(replace(whole, conditions="leads=I,II"), encoders=models)
    assert not list(planted.glob("results/*/*/leads")), "no result to compare with yet"
    run(whole, encoders=models)
    summary = run(replace(whole, conditions="leads=V1"), encoders=models)
    found = {(one.model["name"], one.label): one for one in collect([planted / "results"]).results}
    labels = ("knn", "knn.leads=I,II", "knn.leads=V1")
    assert sorted(found) == [(name, label) for name in ("toy/any-leads", "toy/spread") for label in labels]
    for name in ("toy/any-leads", "toy/spread"):
        twelve, limb, first = (found[name, label] for label in labels)
        assert (twelve.input_condition, limb.input_condition) == ("", "leads=I,II")
        assert twelve.verdict.word == first.verdict.word == "above the floor" and first.score.value > 0.9
        assert limb.verdict.word == "no information shown" and limb.score.low < limb.floor.value < limb.score.high
    assert found["toy/spread", "knn.leads=I,II"].options["leads_taken"] == "zero-filled"
    assert found["toy/any-leads", "knn.leads=I,II"].options["leads_taken"] == "native"
    spread = next(one for one in summary.analyses if one.models[0]["name"] == "toy/spread")
    table = spread.tables["leads"].set_index("leads")
    assert table.index.tolist() == ["12 leads", "I II", "V1"]
    assert table.loc["I II", "loss_low"] > 0 and table.loc["V1", "loss_low"] <= 0, "a loss is positive"
    stores = {path.parent.name for path in planted.glob("cache/embeddings/toy__spread/mine/*/*.arrow")}
    assert len(stores) == 3, "embeddings of twelve leads and of fewer are never mixed"

    again = run(replace(whole, conditions="leads=V1"), encoders=models)
    assert len(again.earlier) == 4
    priced = dry_run(replace(whole, conditions="leads=II", models=(f"{__file__}:Spread",)), Console(main=False))
    assert priced.rows[0]["to_encode"] == 90 and priced.rows[0]["cached"] == 0

    collection = collect([planted / "results"])
    board = scores(collection, TASK)
    assert set(board.texts("place")) <= {"1", "1–2", "1-2"}, "each lead set has separate ranks"
    page = write_markdown(collection, planted / "results")[0].read_text()
    assert "knn.leads=V1" in page and "computed from I and II" in page
    pages = [line for line in page.splitlines() if line.startswith("|") and "knn.leads=V1" in line]
    assert pages and not any(" knn |" in line and "leads=" in line for line in pages)


@pytest.mark.slow
def test_run_without_any_result_ends_as_usual(tmp_path):
    asked = {"models": ("cardiobench/constant",), "tasks": ("ptb_xl_sample/cd",), "protocols": ("probe",), "limit": 3}
    outcome = run(settings(tmp_path, **asked))
    assert not outcome.results and outcome.not_applicable


@pytest.mark.slow
def test_results_of_other_data_or_draws_are_not_compared(planted):
    run(settings(planted), encoders=(Spread(),))
    summary = run(settings(planted, conditions="leads=V1", seed=3), encoders=(Spread(),))
    assert not summary.analyses


def test_submission_is_verified_under_the_lead_set():
    knn, ecg, echo = protocol("knn"), catalog.task("ptb_xl_sample/cd"), catalog.task("phantom_echo/ef")
    assert has_variant(knn, ecg, "leads=I,II") and has_variant(knn, ecg, "leads=I+zero_filled")
    assert (
        not has_variant(knn, ecg, "leads=V7")
        and not has_variant(knn, ecg, "leads")
        and not has_variant(knn, echo, "leads=I")
    )


def test_headlines_never_use_fewer_leads():
    assert primary_protocol(["probe.leads=I", "knn"]) == "knn"


def test_lead_set_has_a_path_on_the_hub():
    assert SAFE.fullmatch("probe.leads=I,II+zero_filled") and not SAFE.fullmatch("probe/leads")


@pytest.fixture
def single(planted):
    """Return a dataset of the same patients, `single`, with lead II only; the label is its amplitude."""
    raw, folder = planted / "raw2", planted / "own" / "single"
    raw.mkdir()
    folder.mkdir()
    labels = np.arange(90) % 2
    for number, label in enumerate(labels):
        np.save(raw / f"{number}.npy", np.load(planted / "raw" / f"{number}.npy")[:, 1] * (1 + label))
    write_dataset(folder, raw, labels, ["II"])
    return planted


def test_recordings_may_have_one_lead(single):
    ecg = open_dataset("single").recording(0)
    assert ecg.leads == ("II",) and np.flatnonzero(ecg.signal.any(axis=0)).tolist() == [1]
    assert ecg.signal[:, 1].tolist() == np.load(single / "raw2" / "0.npy").tolist()


@pytest.mark.slow
def test_twelve_lead_models_get_zeros_for_missing_leads(single):
    known = settings(single, tasks=("single/planted",))
    (one,) = run(known, encoders=(Spread(),)).results
    assert one.score.value > 0.8 and one.scored == 40
    (same,) = run(replace(known, conditions=("leads=II",)), encoders=(Spread(),)).results
    assert same.score.value == one.score.value
    refused = run(replace(known, conditions=("leads=II,V1",)), encoders=(Spread(),))
    assert len(refused.failures) == 90 and "has the leads II, but V1 is requested" in refused.failures[0][-1]


@pytest.mark.slow
def test_twelve_two_and_one_lead_of_real_ecgs(tmp_path):
    """Check the baselines on the bundled ECGs."""
    more = {"tasks": ("ptb_xl_sample/cd",), "limit": 60, "resamples": 200}
    models = ("cardiobench/minirocket", "cardiobench/ecg-morphology")
    for conditions in ((), "leads=I,II", "leads=I"):
        summary = run(settings(tmp_path, models=models, conditions=conditions, **more))
        assert not summary.failures
    for record in summary.analyses:
        table = record.tables["leads"].set_index("leads")
        assert table.index.tolist() == ["12 leads", "I II", "I"]
        assert (
            table["loss"].iloc[0] == 0
            and table["loss"].notna().all()
            and (table["loss_low"] <= table["loss_high"]).all()
        )
    assert len(summary.analyses) == 2
    assert all(isinstance(one, ScoreResult) for one in summary.results)


def test_result_states_leads_and_protocol_options():
    asked = parse_leads("I,II")
    stated = {**condition.facts(asked, native=True), "fs": 500}
    output = ProtocolOutput(np.arange(1), np.zeros(1), {"penalty": 1.0})
    cell = SimpleNamespace(model=SimpleNamespace(preprocessing=stated))
    found = condition.apply(cell, None, output, "I,II").details
    assert found["penalty"] == 1.0 and found["leads"] == "I II" and "fs" not in found


def test_protocols_are_compared_within_a_lead_set():
    facts = {"score": 0.7, "score_low": 0.6, "score_high": 0.8, "loss": 0.1, "loss_low": 0.0, "loss_high": 0.2}
    facts |= {"floor": 0.5, "unit": "", "metric": "AUROC", "better": "higher", "taken": "native"}
    sets = [" ".join(LEADS[:count]) for count in (12, 6, 3, 2, 1)]
    rows = [{"leads": one, "count": len(one.split()), "by": by, **facts} for by in ("knn", "probe") for one in sets]
    record = SimpleNamespace(tables={"leads": pd.DataFrame(rows)}, subject="ptb_xl/cd", models=[{"name": "org/model"}])
    figure = figures.draw(record)["leads"]
    marks = [
        line.get_ydata()[0] for line in figure.axes[0].lines if line.get_marker() == "o" and len(line.get_ydata()) == 1
    ]
    assert marks == pytest.approx([*(one - 0.06 for one in range(5)), *(one + 0.06 for one in range(5))])
    assert figure.get_size_inches()[1] == pytest.approx(1.4 + 5 * (0.25 + 2 * 0.12) + 2 * LINE_HEIGHT)
