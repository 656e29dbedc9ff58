"""Check that only scores of an adopted dataset leave the machine, and only if its name is given; test readers of plug-ins."""

import json
from dataclasses import replace
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from cardiobench.core import plugins
from cardiobench.core.errors import LicenceError
from cardiobench.data.declared.dataset_file import SCHEMA, dataset_schema
from cardiobench.data.media.channels import Channels
from cardiobench.data.media.types import LEADS
from cardiobench.data.open import open_dataset
from cardiobench.hub.outgoing import leave_out_local, public_result
from cardiobench.hub.publish_datasets import publications
from cardiobench.results.consistency import check_consistency
from cardiobench.results.context import PATIENT_IS_RECORD, ResultContext
from cardiobench.results.refits import TRAINING_PATIENTS, Refits
from cardiobench.results.score_result import Breakdown, ClassScore, Estimate, Floor, Gap
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score
from tests.extensions.adopt.folders import FORMATS, adopt, bundled, write_labels
from tests.report.example_results import scored_example
from tests.scoring.factories import BINARY, references, test_rows

LABEL = ("--target", "cd", "--positive", "cd=CD")


@pytest.fixture(autouse=True)
def own_datasets(monkeypatch, tmp_path):
    monkeypatch.setenv(plugins.VARIABLES["hf_datasets"], str(tmp_path / "own"))


def example():
    return scored_example("tmed2/as", 2.0, 0)[1]


def own_result(**changes):
    result = example()
    return replace(result, dataset={**result.dataset, "name": "mine", "local": True}, **changes)


def test_results_of_own_data_are_sent_only_if_named():
    said = []
    other = example()
    assert leave_out_local([own_result(), other], (), said.append) == [other]
    assert len(said) == 1 and "--local-dataset mine" in said[0]
    with pytest.raises(LicenceError, match="--local-dataset mine"):
        leave_out_local([own_result()], ("another",), said.append)
    assert leave_out_local([own_result()], ("mine",), said.append) == [own_result()]
    assert said[-1].startswith("leaves this machine: {"), "what leaves is shown"


def breakdown(**sizes):
    values = {name: Estimate(0.5, 0.4, 0.6, n, n) for name, n in sizes.items()}
    return Breakdown(values, Gap(0.0), next(iter(sizes)))


def test_small_groups_and_texts_of_own_data_stay_here():
    text = "Dr SECRET's ward"
    result = own_result()
    total = result.score.n_patients
    large = {"F": total // 2, "M": total - total // 2}
    classes = ClassScore(total, 20, 20, Estimate(0.7, 0.6, 0.8, total, total), 0.5)
    result = replace(
        result,
        overall={**result.overall, "sensitivity": Estimate(0.5, 0.0, 1.0, 3, 3)},
        further={"balanced_accuracy": 0.75},
        refits=Refits(TRAINING_PATIENTS, 0, "d", 2, {result.metric: (0.6, 0.7), "sensitivity": (1 / 3, 2 / 3)}),
        groups={
            "sex": breakdown(**large),
            "age": breakdown(**{"≤45": total - 1, ">80": 1}),
            "sex x age": breakdown(**{"F, ≤45": total - 3}),
            "site": breakdown(**{text: total}),
            "bmi": breakdown(**{text: total}),
        },
        skipped_groups={f"site={text}": "1 patient"},
        per_class={text: classes, "rare": replace(classes, positives=1, patients=1)},
        warnings=(f"my model says {text}", PATIENT_IS_RECORD),
        options={"k": 3, "note": f"{text}!", "classifier": "logistic", "list": ["a", f"{text}?"]},
        floors={**result.floors, "best_constant": Floor(0.4, text)},
        verdict=replace(result.verdict, sentence=text),
        model={**result.model, "preprocessing": {"fs": 500, "by": f"{text};"}},
    )
    shown = public_result(result)
    assert set(shown.groups) == {"sex"} and not shown.skipped_groups
    assert set(shown.overall) == set(result.overall) - {"sensitivity"}
    assert set(shown.refits.scores) == {result.metric}, "scores of refits give the patients of a small class"
    assert not shown.further, "with a further number, others give the hidden one"
    assert public_result(replace(own_result(), further={"mcc": 0.3})).further == {"mcc": 0.3}, "no class is small"
    assert set(shown.per_class) == {"class 1"}
    assert shown.warnings == (PATIENT_IS_RECORD,)
    assert shown.options == {"k": 3, "classifier": "logistic", "list": ["a"]}
    assert shown.model["preprocessing"] == {"fs": 500}
    assert "SECRET" not in json.dumps(shown.to_json()) and "SECRET" in json.dumps(result.to_json())
    assert not check_consistency(shown) and shown.score == result.score
    assert public_result(shown) == shown


def test_results_of_few_patients_stay_here():
    result = own_result()
    small = replace(result, overall={**result.overall, result.metric: replace(result.score, n=9, n_patients=9)})
    said = []
    assert leave_out_local([small, own_result()], ("mine",), said.append) == [own_result()]
    assert "fewer than 10 patients" in said[0]
    with pytest.raises(LicenceError, match="fewer than 10 patients"):
        leave_out_local([small], ("mine",), said.append)


def test_published_schema_equals_the_file(root):
    published = json.loads((root / "docs" / "schema" / SCHEMA).read_text("utf-8"))
    assert published == json.loads(json.dumps(dataset_schema())), "update cardiobench.data.declared.dataset_file"


def write_text_format(folder, name, signal):
    (folder / f"{name}.muse").write_text(json.dumps(signal.tolist()))


def read(path):
    return Channels(np.array(json.loads(path.read_text())), LEADS, 100.0, ("mV",))


@pytest.mark.slow
def test_reader_of_an_installed_package_adds_a_format(tmp_path, monkeypatch):
    point = EntryPoint("muse", f"{__name__}:read", "cardiobench.readers")
    known = plugins.entry_points
    monkeypatch.setattr(plugins, "entry_points", lambda group: {"muse": point} if group == "readers" else known(group))
    monkeypatch.setattr(plugins, "load", lambda group, name: read)
    frame, signals = bundled(12)
    folder = tmp_path / "recordings"
    folder.mkdir()
    for name, signal in zip(frame["id"], signals, strict=True):
        write_text_format(folder, name, signal)
    labels = write_labels(
        frame, tmp_path / "labels.csv", split=["train", "test"] * 6, file=[f"{name}.muse" for name in frame["id"]]
    )
    assert adopt(folder, labels, tmp_path / "own", *LABEL, "--format", "muse") == 0
    assert np.array_equal(open_dataset("mine").recording(3).signal, signals[3])


def test_own_datasets_are_not_published(tmp_path):
    frame, signals = bundled(12)
    folder = tmp_path / "recordings"
    folder.mkdir()
    for name, signal in zip(frame["id"], signals, strict=True):
        FORMATS["npy"][0](folder, name, signal)
    labels = write_labels(frame, tmp_path / "labels.csv", split=["train", "test"] * 6)
    assert adopt(folder, labels, tmp_path / "own", *LABEL, *FORMATS["npy"][1], "--patient-is-record") == 0
    with pytest.raises(LicenceError, match="never leaves this machine"):
        publications("mine", "me", private=True, i_have_the_right=True)
    assert open_dataset("mine").spec.marks == {"local": True, "patient_is_record": True}


def test_every_score_states_that_patient_ids_are_unknown():
    table = references(BINARY)
    answers = test_rows(table)[["id"]].assign(y_pred=BINARY.classes[0])
    context = ResultContext(dataset={"name": "mine", "patient_is_record": True}, resamples=20)
    assert PATIENT_IS_RECORD in score(Predictions.join(table, answers, BINARY), table, context).warnings
