"""Test external prediction files: accepted forms, and messages of rejected ones."""

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cardiobench.core.errors import BadPredictions, CardioBenchError, MissingData, TableWarning
from cardiobench.data.references_file import References
from cardiobench.results.context import ResultContext
from cardiobench.scoring.external import join_external
from cardiobench.scoring.predictions import Predictions, read_predictions
from cardiobench.scoring.score import score

from .factories import BINARY, VALUE, VIEWS3, references, test_rows


def written(tmp_path, text, name="my.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("id,y_pred", ["007,sick", "8,well"]),
        ("study_id,sick_pred", ["007,1", "8,0"]),
        ("FileName,Prediction", [" 007 ,sick", "8,well"]),
        ("unique_id,p_sick", ["007,0.9", "8,0.2"]),
        ("id,prob_sick,y_pred", ["007,0.9,1.0", "8,0.2,0.0"]),
        ("id,p_0,p_1", ["007,0.1,0.9", "8,0.8,0.2"]),
    ],
)
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_equivalent_prediction_files_give_equal_scores(tmp_path, header, rows, separator, mark):
    text = mark + "\n".join([header, *rows]).replace(",", separator) + "\n"
    answers = read_predictions(written(tmp_path, text), BINARY)
    assert answers["id"].tolist() == ["007", "8"]
    if "y_pred" in answers:
        assert answers["y_pred"].tolist() == ["sick", "well"]
    if "p_sick" in answers:
        assert answers["p_sick"].tolist() == [0.9, 0.2]
        assert answers["p_well"].tolist() == pytest.approx([0.1, 0.8], abs=1e-12)


def test_numbers_keep_every_digit(tmp_path):
    values = [0.1 + 0.2, 1 / 3, 57.123456789012345, 1e-17]
    text = "id,EF_pred\n" + "".join(f"u{i},{value!r}\n" for i, value in enumerate(values))
    assert read_predictions(written(tmp_path, text), VALUE)["y_pred"].tolist() == values


def test_decimal_comma_in_a_semicolon_file(tmp_path):
    answers = read_predictions(written(tmp_path, "id;EF_pred\nu0;55,25\nu1;-1,5\n"), VALUE)
    assert answers["y_pred"].tolist() == [55.25, -1.5]


def test_decimal_comma_in_a_file_with_tabs(tmp_path):
    answers = read_predictions(written(tmp_path, "id\tEF_pred\nu0\t55,25\nu1\t-1,5\n"), VALUE)
    assert answers["y_pred"].tolist() == [55.25, -1.5]


def test_points_that_may_mark_thousands_are_refused(tmp_path):
    with pytest.raises(BadPredictions, match=r"in '1\.201' beside '350' the point may be a thousands mark"):
        read_predictions(written(tmp_path, "id;EF_pred\nu0;1.201\nu1;350\n"), VALUE)


@pytest.mark.parametrize(
    ("text", "task", "unused"),
    [
        ("id,prediction,score\nu0,sick,0.9\nu1,well,0.2\n", BINARY, "'score'"),
        ("id,prediction,chance\nu0,sick,0.9\nu1,well,0.2\n", BINARY, "'chance'"),
        ("id,prediction,chance\nu0,sick,1\nu1,well,0.2\n", BINARY, "'chance'"),
        ("id,prediction,score\nu0,sick,3.5\nu1,well,-2\n", BINARY, "'score'"),
        ("id,EF_pred,Score\nu0,50,51\nu1,60,61\n", VALUE, "'Score'"),
        ("id,prediction,age,male,site\nu0,sick,61,1,a\nu1,well,55,0,b\n", BINARY, ""),
        ("id,p_sick,sex\nu0,0.9,F\nu1,0.2,M\n", BINARY, ""),
    ],
)
def test_columns_that_may_hold_answers_and_are_not_read_are_named(tmp_path, text, task, unused):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        read_predictions(written(tmp_path, text), task)
    notes = [str(one.message) for one in said if one.category is TableWarning]
    assert [
        f"column {unused} is not used; predictions of {task.name} are in one of: y_pred," in note for note in notes
    ] == ([True] if unused else [])


def test_table_without_id_and_prediction_is_refused_with_both_names(tmp_path):
    with pytest.raises(
        BadPredictions, match=r"no id column; it has 'Kennung', 'score'. Name one of: id, .* in one of: y_pred"
    ):
        read_predictions(written(tmp_path, "Kennung,score\nu0,0.9\n"), BINARY)


@pytest.mark.parametrize("ids", [[7, 8], [7.0, 8.0], ["7", "8"]])
def test_parquet_of_any_type(tmp_path, ids):
    path = tmp_path / "my.parquet"
    pd.DataFrame({"study_id": ids, "sick_pred": [1, 0]}).to_parquet(path)
    answers = read_predictions(path, BINARY)
    assert answers["id"].tolist() == ["7", "8"] and answers["y_pred"].tolist() == ["sick", "well"]


def test_class_without_a_column_has_probability_zero_if_the_others_sum_to_one(tmp_path):
    answers = read_predictions(written(tmp_path, "id,prob_A2C,prob_PLAX\nu000,0.25,0.75\n"), VIEWS3)
    assert answers[["p_A2C", "p_A4C", "p_PLAX"]].to_numpy().tolist() == [[0.25, 0.0, 0.75]]
    table = references(VIEWS3, n_test=1)
    with pytest.raises(BadPredictions, match="only"):
        Predictions.join(table, answers.drop(columns="p_A4C"), VIEWS3)


def test_first_most_probable_class_is_predicted():
    table = references(VIEWS3, n_test=3)
    answers = pd.DataFrame({"id": test_rows(table)["id"], "p_A2C": [0.4, 0.2, 0.3], "p_A4C": [0.4, 0.3, 0.1]})
    answers["p_PLAX"] = 1 - answers["p_A2C"] - answers["p_A4C"]
    assert Predictions.join(table, answers, VIEWS3).frame["y_pred"].tolist() == ["A2C", "PLAX", "PLAX"]


def test_predictions_follow_reference_order():
    table = references(VALUE)
    truth = test_rows(table)
    answers = truth[["id"]].assign(y_pred=truth["y_true"] + 1).sample(frac=1, random_state=0)
    joined = Predictions.join(table, answers, VALUE)
    assert np.allclose(joined.sample().y_pred - joined.sample().y_true, 1)
    assert joined.expected == len(truth) and {"sex", "age"} <= set(joined.frame)


def test_disagreeing_label_and_probability_are_used_as_given_with_a_warning():
    table = references(BINARY, n_test=4)
    answers = test_rows(table)[["id"]].assign(y_pred="sick", p_sick=[0.9, 0.4, 0.5, 0.8])
    answers["p_well"] = 1 - answers["p_sick"]
    joined = Predictions.join(table, answers, BINARY)
    assert joined.frame["y_pred"].eq("sick").all()
    assert not joined.warnings, "predictions of a protocol, whose cut is stamped"
    (warning,) = joined.with_doubts().warnings
    assert warning.startswith("y_pred is not the most probable class in 1 of 4 rows, as after applying a threshold")


def good(table, task):
    rows = test_rows(table)
    return rows[["id"]].assign(y_pred=rows["y_true"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: a.iloc[2:], ["my.csv has 58 of the 60 test units of toy/sick", "Missing: u000, u001."]),
        (lambda a: a.iloc[:0], ["0 of the 60", "and 55 more"]),
        (lambda a: pd.concat([a, a.iloc[:1]]), ["repeats 1 id: u000"]),
        (
            lambda a: pd.concat([a, a.iloc[:1].assign(id="t003")]),
            ["Not among them: t003", "1 of these are in split 'train'"],
        ),
        (lambda a: pd.concat([a, a.iloc[:1].assign(id="zzz")]), ["Not among them: zzz"]),
        (
            lambda a: a.assign(y_pred=["severe", *a["y_pred"][1:]]),
            ["1 of 60", "u000 ('severe')", "Classes: well, sick"],
        ),
        (lambda a: a.assign(y_pred=[None, *a["y_pred"][1:]]), ["1 of 60", "u000 (empty)"]),
        (lambda a: a.assign(y_pred="0.3"), ["60 of 60", "If they are probabilities of sick, name the column p_sick."]),
        (lambda a: a.assign(p_sick=1.2, p_well=-0.2), ["60 of 60", "outside [0, 1]", "softmax to logits"]),
        (
            lambda a: a.assign(p_sick=0.7, p_well=0.2),
            ["60 of 60", "do not sum to 1", "Give the softmax over well, sick."],
        ),
        (
            lambda a: a.assign(p_sick=[np.nan] + [0.5] * 59, p_well=0.5),
            ["1 of 60 values of p_sick", "not finite", "u000", "--allow-missing"],
        ),
        (lambda a: a.assign(p_sick=0.5), ["p_sick only"]),
        (lambda a: a.drop(columns="y_pred"), ["neither y_pred nor probabilities"]),
    ],
)
def test_mismatched_predictions_are_refused(change, words):
    table = references(BINARY)
    with pytest.raises(BadPredictions) as error:
        Predictions.join(table, change(good(table, BINARY)), BINARY, source="my.csv")
    assert all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, None, "n/a"])
def test_non_finite_values_are_refused(value):
    table = references(VALUE)
    answers = good(table, VALUE).astype({"y_pred": object})
    answers.loc[5, "y_pred"] = value
    with pytest.raises(BadPredictions, match="1 of 60 values of y_pred are not finite numbers: u005"):
        Predictions.join(table, answers, VALUE)


@pytest.mark.parametrize(("ours", "theirs"), [("007", "7"), ("clip.avi", "clip"), ("12", "12.0"), ("0XAB", "0xab")])
def test_spelling_differences_of_ids_are_explained(ours, theirs):
    table = references(BINARY, n_test=2)
    table.loc[table["id"] == "u000", "id"] = ours
    answers = good(table, BINARY).replace({"id": {ours: theirs}})
    with pytest.raises(BadPredictions, match=f"differ only in spelling \\('{ours}' in the references, '{theirs}'"):
        Predictions.join(table, answers, BINARY)


def test_missing_predictions_can_be_allowed_and_lower_the_coverage():
    table = references(BINARY)
    joined = Predictions.join(table, good(table, BINARY).iloc[3:], BINARY, allow_missing=True)
    assert (len(joined.frame), joined.expected) == (57, 60)
    assert joined.warnings[0] == "3 of the 60 test units of toy/sick have no prediction"
    with pytest.raises(BadPredictions):
        Predictions.join(table, good(table, BINARY).iloc[:0], BINARY, allow_missing=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no rows|cannot be read"),
        ("id,y_pred\n", "no rows"),
        ("who,y_pred\na,sick\n", "no id column"),
        ("id,guess\na,sick\n", "no column of predictions"),
        ("id,y_pred,id\na,sick,b\n", "occurs twice"),
        ("id,y_pred\na,sick,1,2\nb,well,1,2\n", "cannot be read"),
        ("id,y_pred\n,sick\n", "1 of 1 rows have no id"),
        (b"id,y_pred\n\x81\x8da,sick\n", "not text in UTF-8 or cp1252"),
    ],
)
def test_invalid_prediction_files_are_refused(tmp_path, text, words):
    with pytest.raises(BadPredictions, match=words):
        read_predictions(written(tmp_path, text), BINARY)


def test_non_numeric_cell_is_named(tmp_path):
    path = written(tmp_path, "id,EF_pred\nu0,55\nu1,normal\nu2,\n")
    with pytest.raises(BadPredictions, match=r"1 of 3 cells are not numbers: u1 \('normal'\)"):
        read_predictions(path, VALUE)


@pytest.mark.parametrize(
    ("text", "task", "column"),
    [
        ("id,p_sick\nu0,0.5\nu1,\n", BINARY, "p_sick"),  # `p_well` follows from it and is not in the file.
        ("id,prob_1\nu0,0.5\nu1,nan\n", BINARY, "prob_1"),
        ("id,p_sick,p_Other\nu0,0.5,0\nu1,0.5,\n", BINARY, "p_Other"),
        ("id,EF_pred\nu0,55\nu1,inf\n", VALUE, "EF_pred"),
    ],
)
def test_column_with_empty_cells_has_its_name_in_the_file(tmp_path, text, task, column):
    with pytest.raises(BadPredictions, match=f"my.csv: 1 of 2 values of {column} are not finite numbers: u1"):
        read_predictions(written(tmp_path, text), task)


def test_missing_file_is_reported(tmp_path):
    with pytest.raises(MissingData, match="does not exist"):
        read_predictions(tmp_path / "none.csv", VALUE)


def test_damaged_parquet_file(tmp_path):
    with pytest.raises(BadPredictions, match="cannot be read"):
        read_predictions(written(tmp_path, b"PAR1 nonsense", "x.parquet"), VALUE)


def test_save_and_read_back(tmp_path):
    table = references(BINARY)
    joined = Predictions.join(table, good(table, BINARY), BINARY)
    again = Predictions.join(
        table, read_predictions(joined.save(tmp_path / "p" / "predictions.parquet"), BINARY), BINARY
    )
    pd.testing.assert_frame_equal(again.frame, joined.frame)


@settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.one_of(st.binary(max_size=200), st.text(alphabet='id,y_pred;\t\n\r"007 x.\ufeff0', max_size=80)))
def test_any_bytes_are_a_table_or_a_clear_error(tmp_path, text):
    path = written(tmp_path, text)
    try:
        answers = read_predictions(path, BINARY)
    except CardioBenchError as error:
        assert str(path.name) in str(error)
    else:
        assert answers["id"].ne("").all() and len(answers)


MILLION = """
import sys, time
from pathlib import Path
import numpy as np, pandas as pd
from cardiobench.data import Task
from cardiobench.data.references_file import References
from cardiobench.results.context import ResultContext
from cardiobench.scoring.external import join_external
from cardiobench.scoring.predictions import Predictions, read_predictions
from cardiobench.scoring.score import score

count, task = 1_000_000, Task("toy/ef", "regression", "ef", ("mae",))
ids = np.char.add("u", np.arange(count).astype(str))
table = pd.DataFrame({"id": ids, "patient_id": ids, "split": "test", "y_true": np.arange(count) / 7})
table[["id"]].assign(EF_pred=table["y_true"] + 1).to_csv(sys.argv[1], index=False)
start = time.process_time()
joined = Predictions.join(table, read_predictions(Path(sys.argv[1]), task), task)
spent = time.process_time() - start
# Not ru_maxrss, which a new process takes over from the one that started it.
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(len(joined.frame), spent, peak)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's count of peak memory")
def test_million_rows_are_read_quickly(tmp_path):
    """Run in a separate process, so that the peak memory is its own."""
    line = [sys.executable, "-c", MILLION, str(tmp_path / "big.csv")]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows, seconds, kilobytes = map(float, done.stdout.split())
    assert rows == 1_000_000 and seconds < 10 and kilobytes < 1024**2, done.stdout


def test_scored_patients_of_train_are_noted():
    table = references(BINARY, n_test=20)
    answers = test_rows(table)[["id"]].assign(y_pred="well")
    unlabelled = pd.DataFrame(columns=["id", "patient_id", "split"])
    apart = References(BINARY, table, unlabelled, None)
    assert not any("train split too" in note for note in join_external(answers, apart, renewal="").warnings)
    table.loc[table["id"].isin(["u000", "u001", "u002"]), "patient_id"] = "tp0"
    shared = join_external(answers, References(BINARY, table, unlabelled, None), renewal="")
    (note,) = (note for note in shared.warnings if "train split too" in note)
    assert note.startswith("1 of 10 patients of the test split are in the train split too")
    assert note in score(shared, table, ResultContext(resamples=99)).warnings
