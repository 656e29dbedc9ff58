"""Compare the numbers of the overview with hand-worked values."""

import dataclasses
import math

import pandas as pd
import pytest

from cardiobench.data import catalog
from cardiobench.report.overview import STEPS, ScoreCell, marks, missing_reason, overview_tables, skill
from cardiobench.report.page import naming
from cardiobench.report.page.examples import worst_predictions
from cardiobench.results import formatting
from cardiobench.results.collect import ResultEntry
from cardiobench.results.score_result import Bounds, Breakdown, Estimate, Gap
from tests.results.test_formatting import NAN, result


def entry(path="r.json", **more):
    from pathlib import Path

    return ResultEntry(Path(path), result(**more))


def test_skill_is_the_share_of_the_way_to_perfect():
    # Floor 0.5: half of the way to 1 is 0.75; for an error, half of the way to 0 is half of the floor.
    assert skill(result(0.75)) == pytest.approx(0.5)
    assert skill(result(0.5)) == 0.0
    assert skill(result(1.0)) == 1.0
    assert skill(result(0.25, metric="mae", higher=False)) == pytest.approx(0.5)
    assert skill(result(1.0, metric="mae", higher=False)) == pytest.approx(-1.0)
    assert math.isnan(skill(result(NAN)))


def test_perfect_floor_leaves_no_room():
    from cardiobench.results.score_result import Floor

    perfect = dataclasses.replace(result(1.0), floors={"best_uninformed": Floor(1.0)})
    assert math.isnan(skill(perfect))


@pytest.mark.parametrize(
    "value, shade", [(-1, -2), (-0.1, -1), (0, 0), (0.1, 1), (0.2, 2), (0.5, 3), (0.9, 4), (NAN, 0)]
)
def test_shades(value, shade):
    assert ScoreCell(entry(), value, ()).shade == shade and len(STEPS) == 6


def test_every_flag_has_a_mark():
    one = result(collapsed=True, seen_in_pretraining=True)
    one = dataclasses.replace(one, dataset={"name": "tmed2", "twin": True, "limit": 5})
    assert marks(one) == (
        "no information shown",
        "collapsed",
        "seen in pretraining",
        "incomplete",
        "synthetic twin",
        "part of the data",
    )


def test_tables_by_kind_and_coverage_of_each_row():
    entries = [
        entry(task="camus/ef", model="a", metric="mae", higher=False),
        entry(task="camus/ef", model="b", metric="mae", higher=False),
        entry(task="echonet_dynamic/ef", model="a", metric="mae", higher=False),
        entry(task="camus/view", model="a"),
        entry(task="ptb_xl/af", model="c"),
        entry(task="nobody/knows", model="c"),
    ]
    made = overview_tables(entries)
    assert [board.name for board in made] == ["Echo: measurements", "Echo: views", "ECG: diagnoses", "Other tasks"]
    first = made[0]
    assert first.tasks == ("camus/ef", "echonet_dynamic/ef")
    assert [(row.model, row.covered, len(row.cells)) for row in first.rows] == [("a", 2, 2), ("b", 1, 2)]
    assert first.rows[1].cells[1] == "not run"


def test_two_settings_of_a_model_give_two_rows():
    one, two = entry(), entry()
    two = ResultEntry(two.path, dataclasses.replace(two.result, model={"name": "org/name", "revision": "other"}))
    (board,) = overview_tables([one, two])
    assert [row.setting for row in board.rows] == ["", "other"]


def test_reason_of_empty_cell():
    from cardiobench.models.cards import card

    mute, ecg = card("cardiobench/pixel-motion"), card("cardiobench/minirocket")
    assert missing_reason(mute, "zero_shot", catalog.task("camus/ef")) == "not applicable: no text tower"
    assert missing_reason(mute, "native", catalog.task("camus/ef")).startswith("not applicable: none of its heads")
    assert missing_reason(ecg, "probe", catalog.task("camus/ef")) == "not applicable: the model takes ecg"
    assert missing_reason(mute, "probe", catalog.task("camus/ef")) == "not run"
    assert missing_reason(None, "zero_shot", catalog.task("camus/ef")) == "not run", "the model is unknown"


def test_model_without_text_is_listed_as_not_applicable():
    zero = dataclasses.replace(result(model="org/clip", task="camus/view"), protocol="zero_shot")
    made = overview_tables(
        [ResultEntry(entry().path, zero), entry(model="cardiobench/pixel-motion", task="camus/view")]
    )
    mute = [row for row in made[0].rows if row.model == "cardiobench/pixel-motion" and row.protocol == "zero_shot"]
    assert mute[0].cells == ("not applicable: no text tower",) and mute[0].covered == 0


def test_worst_items_by_hand():
    ef = pd.DataFrame({"id": ["a", "b", "c"], "y_true": [50.0, 60.0, 70.0], "y_pred": [51.0, 40.0, 73.0]})
    assert worst_predictions(ef, catalog.task("camus/ef"), 2)[["id", "error"]].values.tolist() == [
        ["b", 20.0],
        ["c", 3.0],
    ]
    task = catalog.task("phantom_ecg/cd")
    no, yes = task.classes
    frame = pd.DataFrame({"id": ["a", "b", "c"], "y_true": [no, yes, no], "y_pred": [yes, no, no]})
    frame[f"p_{no}"], frame[f"p_{yes}"] = [0.4, 0.9, 0.8], [0.6, 0.1, 0.2]
    found = worst_predictions(frame, task)
    assert found["id"].tolist() == ["b", "a"] and found["error"].tolist() == pytest.approx([0.9, 0.6])


def test_generated_recordings_have_tables_at_the_end():
    entries = [entry(task="camus/ef"), entry(task="phantom_echo/ef", generated=True), entry(task="ptb_xl/af")]
    names = [(table.name, table.generated) for table in overview_tables(entries)]
    assert names == [
        ("Echo: measurements", False),
        ("ECG: diagnoses", False),
        ("Generated recordings, Echo: measurements", True),
    ]


def test_cells_are_described_in_sentences():
    one = result(0.6, generated=False, bounds=Bounds(12, 0.57, 0.67))
    text = naming.tooltip(ScoreCell(ResultEntry(entry().path, one), skill(one), marks(one)))
    assert "Floor 50.00. Difference" in text
    assert "Verdict: no information shown (exploratory); a sentence." in text
    assert "12 of 120 unanswered: between 57.00 and 67.00 of all; judged on 57.00." in text
    assert formatting.bounds(result(0.6)) == ""


def test_metrics_have_their_own_number_of_digits():
    one = result(0.6)
    assert naming.metric_text("sensitivity", Estimate(0.9, 0.8, 0.95, 10, 10), one) == ("90.0", "80.0 – 95.0")
    assert naming.metric_text("brier", Estimate(0.0974, NAN, NAN, 10, 10, "too few"), one) == ("0.097", "")
    assert naming.metric_text("auroc", Estimate(NAN, NAN, NAN, 10, 10, "one class"), one) == ("undefined", "one class")
    assert naming.metric_text("bias", Estimate(-1.234, -2, 0, 9, 9), result(5, unit="%")) == ("-1.23", "-2.00 – 0.00")
    one = dataclasses.replace(one, overall={**one.overall, "brier": Estimate(0.1, NAN, NAN, 10, 10, "too few")})
    assert naming.metric_table([one, one])["notes"] == ["brier: too few"], "printed only once"


def test_decision_threshold_source():
    one = dataclasses.replace(
        result(0.6), overall={"f1_macro": Estimate(0.6, 0.5, 0.7, 9, 9), "sensitivity": Estimate(1, 1, 1, 9, 9)}
    )
    assert naming.operating_point(one) == "classes as the protocol predicts them"
    tuned = dataclasses.replace(one, options={"threshold": 0.25, "calibrated_on": 40})
    assert naming.operating_point(tuned) == "log odds 0.25, fixed on 40 training and validation samples"
    assert naming.operating_point(result(0.6)) == ""


def test_gap_is_shown_with_the_gap_expected_by_chance():
    groups = {
        "sex": Breakdown(
            {"F": Estimate(0.5, 0.4, 0.6, 60, 60), "M": Estimate(0.6, 0.5, 0.7, 60, 60)},
            Gap(0.1, 0.08, 0.02, 0.4, 0.8, -0.1, -0.25, 0.05),
            "F",
            {"fnr": Gap(0.2, 0.1, 0.1, 0.03, 0.06)},
        ),
        "bmi": Breakdown({"low": Estimate(0.5, 0.4, 0.6, 60, 60)}, Gap(NAN, reason="one group"), ""),
    }
    (row,) = naming.group_rows([result(0.55, groups=groups)])
    assert (row["gap"], row["expected"], row["excess"], row["p"], row["sure"]) == (
        "10.00",
        "8.00",
        "2.00",
        "0.8",
        False,
    )
    assert row["difference"] == "F minus M: -10.00 [-25.00, 5.00] points"
    assert row["others"] == "fnr: 20.00 points, 10.00 expected, p = 0.06"
