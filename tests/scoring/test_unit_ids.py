"""Test ids of predictions: explanations of unknown ids."""

import pandas as pd
import pytest

from cardiobench.core.errors import BadPredictions
from cardiobench.scoring.predictions import Predictions

from .factories import BINARY

NUMBERS = [f"{number:05d}" for number in range(21_700, 21_720)]
HEX = [f"0X{number * 7919:016X}" for number in range(1, 21)]
PATIENTS = [f"patient{number:04d}" for number in range(395, 415)]
UNLABELLED = pd.DataFrame({"id": ["x1", "x2"], "patient_id": ["x1", "x2"], "split": ["test", "validation"]})


def join(ids, answers, **options):
    table = pd.DataFrame({"id": ids, "patient_id": ids, "split": "test", "y_true": "well"})
    table.loc[:1, "split"] = "train"
    rows = pd.DataFrame({"id": answers, "y_pred": "well"})
    return Predictions.join(table, rows, BINARY, source="my.csv", **options)


@pytest.mark.parametrize(
    ("ids", "spell"),
    [
        (NUMBERS, lambda name: f"HR{name}"),
        (NUMBERS, lambda name: f"records100/21000/{name}_lr"),
        (NUMBERS, lambda name: f"ecg_{int(name)}.dat"),
        (NUMBERS, lambda name: f"{int(name)}.0"),
        ([f"{number:03d}" for number in range(20)], lambda name: str(int(name))),
        (HEX, lambda name: f"Videos\\{name}.avi"),
        (HEX, lambda name: name.lower()),
        (HEX, lambda name: name[2:]),
        (HEX, lambda name: f"{name}.nii.gz"),
        (PATIENTS, lambda name: name[-3:]),
        (PATIENTS, lambda name: f"p{name[-3:]}"),
        (PATIENTS, lambda name: f"{name}_2CH_half_sequence.nii.gz"),
    ],
)
def test_another_spelling_of_the_same_ids_is_explained(ids, spell):
    with pytest.raises(BadPredictions) as error:
        join(ids, [spell(name) for name in ids[2:]])
    message = str(error.value)
    assert f"18 differ only in spelling ('{ids[2]}' in the references, '{spell(ids[2])}' in my.csv" in message
    assert f"did you mean '{ids[2]}'?" in message and "--allow-missing" not in message


@pytest.mark.parametrize("name", ["zzz", "00382", "217000", "21.7"])
def test_no_suggestion_is_made_for_a_dissimilar_id(name):
    with pytest.raises(BadPredictions, match=rf"Not among them: {name}\. No id of the references resembles it\."):
        join(NUMBERS, [*NUMBERS[2:], name])


def test_predictions_for_unlabelled_units_are_dropped_and_counted():
    joined = join(NUMBERS, [*NUMBERS[2:], "x1"], unlabelled=UNLABELLED)
    assert joined.frame["id"].tolist() == NUMBERS[2:] and joined.expected == 18
    assert joined.warnings == ("answers for units of the test split that have no label of toy/sick were left out: 1",)


def test_units_of_other_splits_are_named_with_their_split():
    with pytest.raises(BadPredictions) as error:
        join(NUMBERS, [*NUMBERS, "x1", "x2"], unlabelled=UNLABELLED)
    message = str(error.value)
    assert "Not among them: 21700, 21701, x2." in message
    assert "2 of these are in split 'train'" in message and "1 of these are in split 'validation'" in message
    assert "resembles" not in message


def test_missing_predictions_message_names_the_flag():
    with pytest.raises(BadPredictions, match=r"17 of the 18 .* Missing: 21719\. .*--allow-missing"):
        join(NUMBERS, NUMBERS[2:-1])
