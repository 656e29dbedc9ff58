"""Test aggregation of recordings to units of scoring."""

import dataclasses

import numpy as np
import pytest

from cardiobench.core.errors import BadPredictions
from cardiobench.protocols import list_protocols, protocol
from cardiobench.protocols.base import PredictionProtocol, ProtocolOutput, aggregate
from tests.protocols.conftest import BINARY, REGRESSION, VIEWS, task_data


def test_study_probability_is_mean_over_images():
    task = dataclasses.replace(BINARY, unit_column="study_id")
    data = task_data(task, np.eye(5), ["no"] * 5, ["test"] * 5, study_id=["s1", "s2", "s1", "s1", "s2"])
    values = np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4], [0.4, 0.6]])
    got = aggregate(data, ProtocolOutput(data.indices("test"), values, {}))
    assert got["id"].tolist() == ["s1", "s2"]
    np.testing.assert_allclose(got["p_yes"], [0.4, 0.7])
    assert got["y_pred"].tolist() == ["no", "yes"]


def test_ties_go_to_positive_or_first_class():
    data = task_data(BINARY, np.eye(1), ["no"], ["test"])
    assert aggregate(data, ProtocolOutput(data.indices("test"), np.array([[0.5, 0.5]]), {}))["y_pred"].tolist() == [
        "yes"
    ]
    data = task_data(VIEWS, np.eye(1), ["A2C"], ["test"])
    assert aggregate(data, ProtocolOutput(data.indices("test"), np.array([[0.4, 0.4, 0.2]]), {}))[
        "y_pred"
    ].tolist() == ["A2C"]


def test_patients_ejection_fraction_is_the_mean_over_views():
    task = dataclasses.replace(REGRESSION, unit_column="patient_id")
    data = task_data(task, np.eye(3), [50.0] * 3, ["test"] * 3, patients=["p1", "p1", "p2"])
    got = aggregate(data, ProtocolOutput(data.indices("test"), np.array([40.0, 50.0, 61.0]), {}))
    assert dict(zip(got["id"], got["y_pred"], strict=True)) == {"p1": 45.0, "p2": 61.0}


def test_non_numeric_predictions_are_refused_and_not_skipped():
    task = dataclasses.replace(REGRESSION, unit_column="patient_id")
    data = task_data(task, np.eye(3), [50.0] * 3, ["test"] * 3, patients=["p1", "p1", "p2"])
    with pytest.raises(BadPredictions, match="1 of 3 recordings are not finite numbers: p1"):
        aggregate(data, ProtocolOutput(data.indices("test"), np.array([np.nan, 50.0, 61.0]), {}))


def test_every_protocol_states_its_options():
    for name in list_protocols():
        made = protocol(name)
        assert made.name == name and made.get_params() == dataclasses.asdict(made)
        if isinstance(made, PredictionProtocol):
            assert made.variants(REGRESSION) and made.variants(BINARY)
            assert set(made.variants(BINARY)) <= set(made.result_variants(BINARY))
            assert all(made.workload(variant).cost > 0 for variant in made.variants(BINARY))
