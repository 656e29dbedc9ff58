"""Test scores of masks and landmarks: units, patients, floors, coverage and ejection fractions, on phantoms of known truth."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cardiobench.data import catalog, open_dataset
from cardiobench.results.context import ResultContext
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.compare import compare
from cardiobench.scoring.score import score as score_answers
from cardiobench.tasks.dense_label import DenseLabel
from cardiobench.tasks.frames import DenseScorer, FrameAnswers
from cardiobench.tasks.mask_volumes import MaskVolumes

SEGMENTATION, LANDMARKS = catalog.task("phantom_echo/lv_seg"), catalog.task("phantom_echo/landmarks")
CONTEXT = ResultContext(dataset={"name": "phantom_echo"}, model={"name": "org/model"}, protocol="dense", generated=True)
BOX = np.zeros((24, 24), np.uint8)
BOX[4:14, 6:16], BOX[14:18, 6:16] = 1, 2


def label(patient, unit=None, mask=BOX, points=None, view="A4C", phase="ED", spacing=(1.0, 1.0)):
    task = SEGMENTATION if points is None else LANDMARKS
    recording = f"{unit or patient}_{view}"
    return DenseLabel(task.name, unit or patient, patient, "test", recording, 0, None if points is not None else mask,
                      points, spacing, phase, view)  # fmt: skip


def boxes(count=12, shift=lambda number: number % 3):
    """Return a scorer of predictions shifted by a known number of rows, and the references."""
    scorer = DenseScorer(SEGMENTATION, with_volumes=False)
    for number in range(count):
        for phase in ("ED", "ES"):
            scorer.update(label(f"p{number}", phase=phase), np.roll(BOX, shift(number), axis=0))
    units = [f"p{number}" for number in range(count)]
    references = pd.DataFrame(
        {"id": units, "patient_id": units, "split": "test", "y_true": 2.0, "sex": "F", "age": 50.0}
    )
    return scorer, references


def floor_of(scorer):
    floor = DenseScorer(scorer.task, with_volumes=False)
    for row in scorer.rows:
        floor.update(label(row["patient_id"], phase=row["phase"]), np.roll(BOX, 8, axis=0))
    return floor


def test_score_is_patient_mean_with_log_t_interval():
    scorer, references = boxes()
    result = score_answers(FrameAnswers(scorer, {"best_uninformed": floor_of(scorer)}, 12), references, CONTEXT)
    cavity, muscle = 1 - np.arange(12) % 3 / 10, 1 - np.arange(12) % 3 / 4
    expected = (cavity + muscle) / 2
    score = result.score
    assert (result.metric, score.value, score.n, score.n_patients) == ("dice", pytest.approx(expected.mean()), 12, 12)
    assert result.overall["dice_cavity"].value == pytest.approx(cavity.mean())
    assert result.overall["dice_es"].value == pytest.approx(expected.mean())
    se, loss = expected.std(ddof=1) / np.sqrt(12), 1 - expected.mean()
    moved = (12 * loss + 1) / 13
    low = 1 - moved * np.exp(stats.t.ppf(0.975, 11) * se / moved)
    assert score.se == pytest.approx(se) and score.low == pytest.approx(low)
    assert result.coverage == {"scored": 24, "expected": 24} and result.bounds is None
    assert result.floor.value == pytest.approx(0.1) and result.floor.reached_by.startswith("the mean mask")
    assert result.verdict.word == "no information shown", "all patients have the same mask"


def test_scores_are_means_and_not_medians():
    """Test frames with Dice 1, 1 and .4 (mean .8) and units with 1, 1, 1 and .2 (mean .8); the medians are 1."""
    shifted = DenseScorer(SEGMENTATION, with_volumes=False)
    for number, rows in enumerate((0, 0, 6)):
        shifted.update(replace(label("p0"), frame=number), np.roll(BOX, rows, axis=0))
    cavity, muscle = [1, 1, 0.4], [1, 1, 0]
    scores = shifted.unit_scores.loc["p0"]
    assert scores["dice_cavity"] == pytest.approx(0.8) and scores["dice_myocardium"] == pytest.approx(2 / 3)
    assert scores["dice"] == pytest.approx((np.mean(cavity) + np.mean(muscle)) / 2)
    scorer, references = boxes(shift=lambda number: 8 if number % 4 == 0 else 0)
    result = score_answers(FrameAnswers(scorer, {"best_uninformed": floor_of(scorer)}, 12), references, CONTEXT)
    assert result.overall["dice_cavity"].value == pytest.approx((3 * 1 + 0.2) / 4)
    assert result.floor.value == pytest.approx(0.1)


@pytest.mark.parametrize("phases", [("ED",), ("ED", "ES")])
def test_three_structures_count_by_their_mean(phases):
    """Test two correct structures and an absent one: two thirds overall and in each phase."""
    three = np.roll(BOX, 4, axis=1) + 3 * np.roll(BOX == 1, -6, axis=1).astype(np.uint8)
    scorer = DenseScorer(replace(SEGMENTATION, structures=("cavity", "myocardium", "atrium")), with_volumes=False)
    for phase in phases:
        scorer.update(label("p0", mask=three, phase=phase), np.where(three == 3, 0, three).astype(np.uint8))
    scores = scorer.unit_scores.loc["p0"]
    found = [scores["dice"], *(scores[f"dice_{phase.lower()}"] for phase in phases if len(phases) > 1)]
    assert scores["dice_atrium"] == 0 and found == pytest.approx([2 / 3] * len(found))


def test_fewer_than_ten_patients_with_the_same_views_are_too_few():
    """Test twelve patients: nine have one view and two phases; the others have different sets of views or phases."""
    odd = {"p9": (("A2C", "ED"),), "p10": (("A2C", "ES"),), "p11": (("A4C", "ED"), ("A2C", "ES"))}
    scorer, (_, references) = DenseScorer(SEGMENTATION, with_volumes=False), boxes()
    for number, name in enumerate(references["id"]):
        for view, phase in odd.get(name, (("A4C", "ED"), ("A4C", "ES"))):
            scorer.update(label(name, view=view, phase=phase), np.roll(BOX, number % 3, axis=0))
    result = score_answers(FrameAnswers(scorer, {"best_uninformed": floor_of(scorer)}, 12), references, CONTEXT)
    assert result.verdict.word == "too few to say"
    assert result.verdict.sentence.startswith("9 of 12 patients share their views and phases with another")
    assert result.score.value > result.floor.value


def test_patients_with_more_units_are_one_cluster():
    scorer = DenseScorer(SEGMENTATION, with_volumes=False)
    for number in range(24):
        scorer.update(label(f"p{number // 2}", f"u{number}"), np.roll(BOX, number // 2 % 3, axis=0))
    units = [f"u{number}" for number in range(24)]
    references = pd.DataFrame(
        {"id": units, "patient_id": [f"p{n // 2}" for n in range(24)], "split": "test", "y_true": 1.0}
    )
    twice = score_answers(FrameAnswers(scorer, {"best_uninformed": scorer}, 24), references, CONTEXT).score
    single, once = boxes()
    assert (twice.n, twice.n_patients) == (24, 12)
    assert twice.se == pytest.approx(
        score_answers(FrameAnswers(single, {"best_uninformed": single}, 12), once, CONTEXT).score.se
    )


def test_missing_units_lower_the_coverage_and_the_verdict_takes_the_worst_case():
    scorer, references = boxes()
    result = score_answers(FrameAnswers(scorer, {"best_uninformed": floor_of(scorer)}, 15), references, CONTEXT)
    assert result.coverage == {"scored": 24, "expected": 30}
    assert result.bounds.missing == 6 and result.bounds.worst == pytest.approx(result.score.value * 12 / 15)
    assert result.bounds.best == pytest.approx((result.score.value * 12 + 3) / 15)
    assert "6 of 30 labelled test frames have no score" in result.warnings


@pytest.mark.parametrize("labelled", [2, 4, 8])
def test_patient_coverage_is_share_of_predicted_frames(labelled):
    """Check the first patient, with 2 scored frames; in the worst case, the other frames add nothing to its mean."""
    scorer, references = boxes()
    references.loc[0, "y_true"] = labelled
    result = score_answers(FrameAnswers(scorer, {"best_uninformed": floor_of(scorer)}, 12), references, CONTEXT)
    scores = scorer.unit_scores["dice"].to_numpy()
    assert result.coverage == {"scored": 24, "expected": 22 + labelled}
    assert result.score.value == pytest.approx(scores.mean()) and result.score.n == 12
    if labelled == 2:
        assert result.bounds is None and not any("have no score" in line for line in result.warnings)
        return
    share = 2 / labelled
    assert result.bounds.missing == labelled - 2
    assert result.bounds.worst == pytest.approx((scores[0] * share + scores[1:].sum()) / 12)
    assert result.bounds.best == pytest.approx((scores[0] * share + 1 - share + scores[1:].sum()) / 12)
    assert result.verdict.difference == pytest.approx(result.bounds.worst - result.floor.value)


def test_missing_landmark_frame_counts_as_worst_unit():
    """Test errors of 1 to 12 mm and one missing unit, whose error would be 12 at worst and 0 at best."""
    scorer, points = DenseScorer(LANDMARKS), np.array([[8.0, 10], [8, 20], [8, 60], [8, 63]])
    for number in range(12):
        scorer.update(label(f"p{number}", points=points), points + np.array([0, 1 + number]))
    units = [f"p{number}" for number in range(13)]
    references = pd.DataFrame({"id": units, "patient_id": units, "split": "test", "y_true": 1.0})
    result = score_answers(FrameAnswers(scorer, {"best_uninformed": scorer}, 13), references, CONTEXT)
    assert result.coverage == {"scored": 12, "expected": 13} and result.score.value == pytest.approx(6.5)
    assert (result.bounds.worst, result.bounds.best) == pytest.approx(((78 + 12) / 13, 78 / 13))


def test_identical_predictions_are_collapsed():
    scorer, references = boxes(shift=lambda number: 8)
    result = score_answers(FrameAnswers(scorer, {"best_uninformed": floor_of(scorer)}, 12), references, CONTEXT)
    assert result.collapsed and result.verdict.word != "above the floor"


def test_structure_absent_from_both_masks_is_left_out():
    scorer = DenseScorer(SEGMENTATION, with_volumes=False)
    cavity = np.where(BOX == 1, BOX, 0)
    scorer.update(label("p0", mask=cavity, spacing=None), cavity)
    scores = scorer.unit_scores.loc["p0"]
    assert scores["dice"] == 1 and np.isnan(scores["dice_myocardium"])
    assert not [name for name in scores.index if name.startswith("hausdorff")]


@pytest.fixture(scope="module")
def phantoms():
    """Return masks and points of the test patients."""
    source = open_dataset("phantom_echo")
    rows = {task.name: source.task_rows(task).query("split == 'test'").head(12) for task in (SEGMENTATION, LANDMARKS)}
    builder = catalog.builder("phantom_echo")
    return source, {name: list(builder.dense_labels(None, catalog.task(name), part)) for name, part in rows.items()}


@pytest.fixture(scope="module")
def perfect(phantoms):
    """Return a scorer of perfect masks, and the listed ejection fractions."""
    source, labels = phantoms
    scorer = DenseScorer(SEGMENTATION)
    for one in labels[SEGMENTATION.name]:
        scorer.update(one, one.mask)
    return scorer, source.references(SEGMENTATION), source.frame.groupby("patient_id")["ef"].first()


def scored(perfect):
    scorer, references, ef = perfect
    floor = {"best_uninformed": scorer}
    return score_answers(FrameAnswers(scorer, floor, len(scorer.unit_scores), ef), references, CONTEXT)


@pytest.mark.slow
def test_perfect_masks_of_phantoms_have_perfect_numbers(perfect):
    result = scored(perfect)
    assert result.score.value == 1 and result.overall["hausdorff95"].value == 0
    same = {result.overall[key].value for key in ("ef_mae", "ef_mae_largest", "ef_oracle_mae")}
    assert len(same) == 1 and same.pop() < 1.0
    assert result.overall["ef_oracle_mae"].n == result.score.n, "every mask has a volume"
    assert 2 < result.overall["ef_oracle_mae_camus"].value < 8, "one step for both phases"
    assert result.verdict.p_adjusted < 0.05, "no mask of another patient fits as well"


@pytest.mark.slow
def test_masks_without_a_volume_are_counted_and_leave_their_patient_out(perfect):
    scorer, references, ef = perfect
    measured = dict(scorer.volumes.measured)
    key = next(key for key in measured if key[-1] == "predicted")
    measured[key] = "empty mask"
    result = scored((replace(scorer, volumes=MaskVolumes(measured)), references, ef))
    assert result.overall["ef_mae"].n == result.overall["ef_oracle_mae"].n - 1
    assert f"1 of {len(scorer.rows)} predicted masks have no volume (empty mask 1)" in result.warnings


@pytest.mark.slow
def test_islands_affect_the_volume_of_a_mask_but_not_of_its_largest_component(phantoms, perfect):
    """Test islands of up to 9 pixels next to a cavity of thousands: without islands, every mask equals the truth."""
    _, references, ef = perfect
    spoilt = DenseScorer(SEGMENTATION)
    for one in phantoms[1][SEGMENTATION.name]:
        mask = one.mask.copy()
        mask[2:5, 2:5] = 1
        spoilt.update(one, mask)
    result = scored((spoilt, references, ef))
    assert np.isnan(result.overall["ef_mae"].value)
    assert result.overall["ef_mae_largest"].value == result.overall["ef_oracle_mae"].value
    count = len(spoilt.rows)
    assert f"{count} of {count} predicted masks have no volume (more than one piece {count})" in result.warnings
    assert not any("largest piece" in sentence for sentence in result.warnings)


def test_distances_equal_shifts_of_points_and_masks(phantoms):
    source, labels = phantoms
    scorer = DenseScorer(LANDMARKS)
    for one in labels[LANDMARKS.name]:
        scorer.update(one, one.points + np.array([3, 0]))
    sides = np.array([one.spacing[1] for one in labels[LANDMARKS.name]])
    scores = scorer.unit_scores
    assert scores["landmark_error"].to_numpy() == pytest.approx(3 * sides)
    assert scores["within_5"].to_numpy() == pytest.approx((3 * sides <= 5).astype(float))
    assert scores[["ivs_error", "lvid_error", "lvpw_error"]].to_numpy() == pytest.approx(0, abs=1e-9)
    longer = DenseScorer(LANDMARKS)
    for one in labels[LANDMARKS.name]:
        direction = one.points[1] - one.points[0]
        moved = one.points.copy()
        moved[0] -= direction  # The septum is twice as thick.
        longer.update(one, moved)
    septum = source.frame.set_index("id").loc[scores.index, "ivsd"] * 10
    assert longer.unit_scores["ivs_error"].to_numpy() == pytest.approx(septum.to_numpy()), "mm"
    masks = DenseScorer(SEGMENTATION, with_volumes=False)
    for one in labels[SEGMENTATION.name][:6]:
        masks.update(one, np.roll(one.mask, 2, axis=1))
    expected = [2 * one.spacing[1] for one in labels[SEGMENTATION.name][:6]]
    assert masks.frame["hausdorff95_cavity"].to_numpy() == pytest.approx(expected, rel=0.02)


def test_result_is_saved_and_read_again(tmp_path):
    scorer, references = boxes()
    result = score_answers(FrameAnswers(scorer, {"best_uninformed": floor_of(scorer)}, 12), references, CONTEXT)
    result.save(tmp_path / "result.json")
    again = ScoreResult.load(tmp_path / "result.json")
    assert again.overall == result.overall and again.verdict == result.verdict


def test_label_without_content_is_refused():
    with pytest.raises(ValueError, match="has no label to score: the mask is empty"):
        DenseScorer(SEGMENTATION).update(replace(label("p0"), mask=None, reason="the mask is empty"), BOX)


def test_two_models_are_compared_by_the_paired_differences_of_their_units():
    """Compare with SciPy's paired t-test of the units' Dice: difference, interval and p-value; a lower error is better."""
    (one, _), (other, _) = boxes(), boxes(shift=lambda number: number % 3 + 1 + number % 2)
    pair = compare(
        *(
            SEGMENTATION.rules.stored_answers(scorer.frame, SEGMENTATION, None, name)
            for name, scorer in (("a", one), ("b", other))
        )
    )
    scores = [scorer.unit_scores["dice"] for scorer in (one, other)]
    expected = stats.ttest_rel(*scores)
    assert pair.difference == pytest.approx(scores[0].mean() - scores[1].mean())
    assert pair.p_value == pytest.approx(expected.pvalue)
    assert (pair.low, pair.high) == pytest.approx(tuple(expected.confidence_interval()))
    assert (pair.metric, pair.n, pair.n_patients, pair.outcome) == ("dice", 12, 12, "answers differ")
    near, far = DenseScorer(LANDMARKS), DenseScorer(LANDMARKS)
    points = np.array([[8.0, 10], [8, 20], [8, 60], [8, 63]])
    for number in range(12):
        for scorer, off in ((near, 1 + 0.1 * number), (far, 3)):
            scorer.update(label(f"p{number}", points=points), points + np.array([0, off]))
    assert (
        compare(*(LANDMARKS.rules.stored_answers(one.frame, LANDMARKS, None, "") for one in (near, far))).outcome
        == "answers differ"
    )
