"""Test the defaults of a minimal declared dataset."""

import pytest
from pydantic import ValidationError

from cardiobench.data.declared.dataset_file import DatasetFile

LEAST = {
    "schema": 1,
    "name": "mine",
    "title": "Mine",
    "version": "1",
    "modality": "ecg",
    "recordings": {"folder": "ecgs", "format": "npy"},
    "labels": {"file": "labels.csv", "id": "id"},
    "tasks": {"cd": {"kind": "binary", "column": "cd", "classes": ["no", "yes"]}},
}


def test_patients_are_distinguished_and_the_dataset_is_immutable():
    checked = DatasetFile(**LEAST)
    assert not checked.patient_is_record and not checked.redistributable
    with pytest.raises(ValidationError, match="frozen"):
        checked.redistributable = True
    with pytest.raises(ValidationError, match="frozen"):
        checked.tasks["cd"].unmeasured = True
