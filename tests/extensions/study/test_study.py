"""Test one prediction per study on synthetic studies with a known signal or a known leak."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import roc_auc_score

from cardiobench.core.errors import NotApplicable
from cardiobench.data.references import references_of
from cardiobench.data.spec import Task
from cardiobench.extensions.study.protocol import FLOOR, StudyProbe
from cardiobench.extensions.study.recordings import StudyRecordings, recorded
from cardiobench.protocols.base import TaskData, aggregate
from cardiobench.protocols.cut import cut_by_validation
from cardiobench.results.verdict import Verdict
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.score import score
from tests.protocols.conftest import task_data

AS = Task("toy/as", "binary", "as", ("f1_macro",), ("no", "yes"), unit_column="study_id")
EF = Task("toy/ef", "regression", "ef", ("mae",), unit="%", unit_column="study_id")
FINDINGS = Task("toy/findings", "multilabel", "findings", ("auroc_macro",), ("A", "B"), unit_column="study_id")
VIEW = ("A2C", "A4C", "PLAX", "PSAX")
QUICK, CHEAP = StudyProbe(seeds=1, heads=2, epochs=15), StudyProbe(seeds=2, heads=2, epochs=2)


def studies(marked, present, signal_in="PLAX", strength=4.0, task=AS, labels=None, dim=8, seed=0):
    """Return the recordings of studies as noise vectors, with a signal in one view.

    Args:
        marked: Whether a study has the finding, shape (m,).
        present: Number of recordings per study and view, shape (m, 4).
    """
    rng = np.random.default_rng(seed)
    rows = [
        (study, view)
        for study, counts in enumerate(present)
        for view, n in zip(VIEW, counts, strict=True)
        for _ in range(n)
    ]
    vectors = rng.normal(size=(len(rows), dim))
    for number, (study, view) in enumerate(rows):
        vectors[number, :4] += 5 * (np.array(VIEW) == view)
        vectors[number, 5] += strength * marked[study] * (view == signal_in)
    split = np.repeat(
        ["train", "validation", "test"],
        [len(marked) // 2, len(marked) // 4, len(marked) - len(marked) // 2 - len(marked) // 4],
    )
    names = [f"s{study}" for study, _ in rows]
    values = np.where(marked, "yes", "no") if labels is None else np.asarray(labels)
    order = np.random.default_rng(1).permutation(len(rows))  # Recordings of the same study are not adjacent.
    data = task_data(
        task,
        list(vectors[order]),
        [values[rows[one][0]] for one in order],
        [split[rows[one][0]] for one in order],
        [f"p{rows[one][0]}" for one in order],
        study_id=[names[one] for one in order],
        view=[rows[one][1] for one in order],
    )
    return data


def some(count, seed=0, absent=0.2):
    rng = np.random.default_rng(seed)
    present = rng.integers(1, 3, (count, 4)) * (rng.random((count, 4)) > absent)
    present[present.sum(axis=1) == 0, 0] = 1
    return rng.random(count) < 0.5, present


def answers(data, protocol, variant):
    """Return the predicted probability of the finding for each test study, and whether the study has it."""
    output = protocol.predict(data, None, variant)
    frame = aggregate(data, output)
    truth = data.rows.drop_duplicates("study_id").set_index("study_id")[data.task.target]
    return frame, (truth[frame["id"]] == "yes").to_numpy(), output


def result_of(data, protocol, variant="attention"):
    """Score predictions as a run does."""
    output = cut_by_validation(data, protocol.predict(data, None, variant))
    references = references_of(data.rows, data.task)
    predictions = Predictions.join(references, aggregate(data, output), data.task)
    return score(predictions.with_floors(protocol.floors(data.rows, data.task)), references)


@pytest.mark.slow
def test_signal_in_one_view_is_found_despite_missing_views():
    marked, present = some(240)
    data, protocol = studies(marked, present, strength=3), StudyProbe(seeds=1, heads=4, epochs=40)
    areas, found = {}, {}
    for variant in ("attention", "mean", "best_view"):
        frame, truth, found[variant] = answers(data, protocol, variant)
        assert sorted(frame["id"]) == sorted(f"s{one}" for one in range(180, 240)), "one prediction per study"
        assert np.isfinite(found[variant].values).all()
        has = np.array([present[int(name[1:]), 2] > 0 for name in frame["id"]])
        assert not has.all()
        areas[variant] = roc_auc_score(truth[has], frame["p_yes"][has])
    assert areas["attention"] > 0.95 and areas["best_view"] > 0.95, areas
    assert areas["mean"] < areas["attention"], areas
    chosen = found["best_view"].details
    assert chosen["view"] == "PLAX" and next(iter(chosen["validation_quality"])) == "PLAX"
    assert chosen["test_units_with_view"] == [int((present[180:, 2] > 0).sum()), 60]


@pytest.mark.slow
def test_floor_detects_a_planted_leak():
    protocol = StudyProbe(seeds=1, epochs=30)
    marked, present = some(400, absent=0)
    present[:, 3] = marked  # Exactly the patients with the finding have the fourth view.
    leaky = result_of(studies(marked, present, strength=0), protocol)
    assert leaky.floors[FLOOR].value > 0.95 and leaky.floor.value == leaky.floors[FLOOR].value
    assert leaky.floor.reached_by == FLOOR
    assert leaky.score.value > 0.9 and leaky.verdict.word is Verdict.INFORMED, leaky.verdict
    marked, present = some(400)
    honest = result_of(studies(marked, present, strength=8), protocol)
    assert honest.floors[FLOOR].value < 0.65 and honest.verdict.word is Verdict.ABOVE, honest.verdict


@pytest.mark.slow
def test_floor_knows_counts_and_times():
    marked, present = some(200, absent=0)
    present[:, 1] = 1 + 2 * marked
    by_count = studies(marked, present, strength=0)
    assert roc_auc_score(marked[150:], _floor(by_count)["p_yes"]) == 1
    marked, present = some(200, absent=0)
    data = studies(marked, present, strength=0)
    late = (
        np.array([marked[int(name[1:])] for name in data.rows["study_id"]]) & (data.rows["view"] == "PSAX").to_numpy()
    )
    at = pd.Timestamp("2140-01-01 10:00") + pd.to_timedelta(np.where(late, 50, np.arange(len(late)) % 5), unit="min")
    rows = data.rows.assign(acquisition_datetime=at.astype(str))
    assert roc_auc_score(marked[150:], _floor(replace(data, rows=rows))["p_yes"]) > 0.95
    unknown = rows.assign(acquisition_datetime=None)
    assert roc_auc_score(marked[150:], _floor(replace(data, rows=unknown))["p_yes"]) < 0.75


def _floor(data):
    frame = QUICK.floors(data.rows, data.task)[FLOOR]
    return frame.set_index("id").loc[[f"s{one}" for one in range(150, 200)]]


def test_recording_facts_equal_hand_worked_values():
    data = studies(np.array([True, False, True, False]), [(2, 0, 1, 0), (0, 1, 0, 0), (1, 1, 1, 1), (0, 0, 0, 1)])
    units = recorded(data.rows.sort_values("study_id"), AS)
    assert list(units.rows["study_id"]) == ["s0", "s1", "s2", "s3"]
    log = np.log1p
    expected = [1, 0, 1, 0, log(2), 0, log(1), 0, log(3)]
    np.testing.assert_allclose(units.embeddings.vectors[0], expected)
    assert units.embeddings.vectors.dtype == np.float64
    nameless = recorded(data.rows.drop(columns="view"), AS)
    assert nameless.embeddings.vectors.shape == (4, 3), "one unnamed view: present, count, and total count"


def test_tokens_of_a_unit_are_its_recordings_in_order():
    data = studies(np.array([True, False]), [(1, 1, 0, 0), (0, 2, 1, 0)])
    units, present = StudyRecordings(data).recordings()
    assert list(np.diff(units.embeddings.offsets)) == [
        (data.rows["study_id"] == name).sum() for name in units.rows["study_id"]
    ]
    for number, name in enumerate(units.rows["study_id"]):
        own = (data.rows["study_id"] == name).to_numpy()
        np.testing.assert_array_equal(units.embeddings.parts(number), data.features[own])
    means, present = StudyRecordings(data).means((data.rows["view"] == "PLAX").to_numpy())
    only = ((data.rows["view"] == "PLAX") & (data.rows["study_id"] == "s1")).to_numpy()
    np.testing.assert_array_equal(means.embeddings.vectors, data.features[only])
    assert list(means.rows["study_id"]) == ["s1"] and list(StudyRecordings(data).ids[present]) == ["s1"]


@pytest.mark.slow
@pytest.mark.parametrize("task", [EF, FINDINGS], ids=["regression", "multilabel"])
def test_numbers_and_labels_are_predicted(task):
    marked, present = some(120)
    labels = 50 + 10.0 * marked if task is EF else np.where(marked, "A;B", "A")
    labels = np.where(np.arange(120) % 3 == 0, "", labels) if task is FINDINGS else labels
    data = studies(marked, present, task=task, labels=labels)
    for variant in ("attention", "mean", "best_view"):
        output = CHEAP.predict(data, None, variant)
        assert np.isfinite(output.values).all() and len(output.repeats) == 2
        np.testing.assert_allclose(output.values, np.mean(output.repeats, axis=0))
        assert (output.values == CHEAP.predict(data, None, variant).values).all()
    (floor,) = CHEAP.floors(data.rows, task).values()
    assert len(floor) == 30


@pytest.mark.slow
def test_test_studies_do_not_choose_the_view():
    marked, present = some(160)
    data = studies(marked, present)
    test = data.rows["split"] == "test"
    other = replace(data, rows=data.rows.assign(**{"as": np.where(test, "no", data.rows["as"])}))
    for variant in ("attention", "mean", "best_view"):
        one, two = (CHEAP.predict(each, None, variant) for each in (data, other))
        assert (one.values == two.values).all() and one.details == two.details
    one, two = (CHEAP.floors(each.rows, AS)[FLOOR] for each in (data, other))
    pd.testing.assert_frame_equal(one, two)


@pytest.mark.slow
def test_view_is_chosen_for_all_validation_patients():
    marked, present = some(240, absent=0)
    present[:, 3] = np.arange(240) % 8 == 0  # A perfect view that one study in eight has, and a good one that all have.
    data = studies(marked, present, signal_in="PLAX", strength=1.5)
    vectors = data.embeddings.vectors.copy()
    rare = (data.rows["view"] == "PSAX").to_numpy()
    vectors[rare, 5] += 20 * np.where(data.rows["as"][rare] == "yes", 1, -1)
    data = replace(data, embeddings=replace(data.embeddings, vectors=vectors))
    assert QUICK.predict(data, None, "best_view").details["view"] == "PLAX"


def test_model_combines_recordings_itself():
    class Own:
        name, revision, modalities, dim, pooling = "toy/own", "1", ("echo",), 8, "mean"
        sampling, preprocessing, warnings = None, {}, ()
        transform = encode = to = staticmethod(lambda value: value)

        def study_vectors(self, target, units):
            assert target == "as"
            return np.stack([unit[:, 5].max(keepdims=True) for unit in units])

    marked, present = some(200)
    data = studies(marked, present, strength=8)
    output = QUICK.predict(data, Own(), "own")
    has = present[150:, 2] > 0
    by_study = dict(zip(data.rows["study_id"].to_numpy()[output.indices], output.values[:, 1], strict=True))
    values = np.array([by_study[f"s{one}"] for one in range(150, 200)])
    assert roc_auc_score(marked[150:][has], values[has]) > 0.98
    with pytest.raises(NotApplicable, match="no method to combine"):
        QUICK.predict(data, type("Plain", (), {"name": "toy/plain"})(), "own")


def test_uncombinable_recordings_give_a_reason():
    marked, present = some(80)
    data = studies(marked, present)
    with pytest.raises(NotApplicable, match="is a separate unit"):
        QUICK.check(replace(AS, unit_column="id"))
    one_each = data.rows.drop_duplicates("study_id").index
    alone = task_data(AS, data.features[one_each], data.rows["as"][one_each], data.rows["split"][one_each], study_id=data.rows["study_id"][one_each].to_numpy())  # fmt: skip
    with pytest.raises(NotApplicable, match="no study_id of toy/as has more than one recording"):
        QUICK.predict(alone, None, "attention")
    nameless = replace(data, rows=data.rows.drop(columns="view"))
    assert len(CHEAP.predict(nameless, None, "attention").values) == 20
    with pytest.raises(NotApplicable, match="has no views"):
        QUICK.predict(nameless, None, "best_view")
    same = replace(data, rows=data.rows.assign(**{"as": "no"}))
    with pytest.raises(NotApplicable, match="two classes"):
        QUICK.predict(same, None, "attention")


def test_floor_is_computed_in_double_precision():
    marked, present = some(80)
    data = recorded(studies(marked, present).rows, AS)
    (reader,) = QUICK._readers([("", data, np.arange(len(data.rows)))])
    assert reader.training.dtype is torch.float64
    probe, _ = reader.training.train(0)
    assert {value.dtype for value in probe.state_dict().values()} == {torch.float64}
    assert isinstance(data, TaskData)


def test_unknown_time_counts_as_first_recording():
    data = studies(np.array([True]), [(1, 1, 0, 0)])
    rows = data.rows.assign(acquisition_datetime=["2140-01-01 10:00", None])
    without = recorded(data.rows, AS).features.shape[1]
    assert (recorded(rows, AS).features[0, without:] == 0).all()


def test_times_of_several_time_zones_are_compared():
    data = studies(np.array([True]), [(1, 1, 0, 0)])
    without = recorded(data.rows, AS).features.shape[1]
    zones = data.rows.assign(acquisition_datetime=["2140-01-01T10:00+02:00", "2140-01-01T10:00+01:00"])
    assert recorded(zones, AS).features[0, without] == pytest.approx(np.log1p(60))


def test_run_selects_three_read_outs():
    assert StudyProbe().read_outs == ("attention", "mean", "best_view")
