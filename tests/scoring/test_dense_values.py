"""Compare Dice, Hausdorff distance and landmark error with MONAI, scikit-learn and hand-worked shapes."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from cardiobench.metrics.load import load_formula, load_metric

DICE, HD95, LANDMARKS = (load_metric(name).compute for name in ("dice", "hausdorff95", "landmark_error"))
y, x = np.mgrid[:64, :64]
DISC = ((x - 30) ** 2 + (y - 28) ** 2 <= 14**2).astype(int)
ELLIPSE = (((x - 33) / 17) ** 2 + ((y - 31) / 11) ** 2 <= 1).astype(int)
DIAMOND = (abs(x - 20) + abs(y - 40) <= 9).astype(int)


@pytest.mark.parametrize(
    ("spacing", "one", "other", "expected"),
    [
        ((1, 1), DISC, ELLIPSE, 6.0),
        ((1, 1), DISC, DIAMOND, 22.627416610717773),
        ((0.5, 0.3), DISC, ELLIPSE, 2.9366068840026855),
        ((0.5, 0.3), ELLIPSE, DIAMOND, 8.236504554748535),
        ((0.2, 1.7), DISC, ELLIPSE, 8.51081371307373),
        ((0.2, 1.7), ELLIPSE, DIAMOND, 34.03868103027344),
    ],
)
def test_hausdorff95_equals_monai(spacing, one, other, expected):
    """Values of `monai.metrics.compute_hausdorff_distance(..., percentile=95, spacing=...)` in MONAI 1.6.1, float32."""
    assert HD95([one], [other], spacing=spacing)["hausdorff95"] == pytest.approx(expected, rel=1e-6)
    assert HD95([other], [one], spacing=spacing)["hausdorff95"] == pytest.approx(expected, rel=1e-6), "symmetric"


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [(DISC, ELLIPSE, 0.7929883003234863), (DISC, DIAMOND, 0.1536523997783661), (ELLIPSE, DIAMOND, 0.16449086368083954)],
)
def test_dice_equals_monai_and_scikit_learn(one, other, expected):
    """Values of `monai.metrics.compute_dice` in MONAI 1.6.1, float32."""
    assert DICE([one], [other])["dice"] == pytest.approx(expected, rel=1e-6)
    assert DICE([one], [other])["dice"] == pytest.approx(f1_score(one.ravel(), other.ravel()), rel=1e-12)


def test_dice_of_several_structures_is_f1_of_each_frame_averaged():
    rng = np.random.default_rng(3)
    truth, guess = rng.integers(0, 4, (5, 9, 7)), rng.integers(0, 4, (5, 9, 7))
    by_frame = [
        f1_score(a.ravel(), b.ravel(), labels=[1, 2, 3], average=None) for a, b in zip(truth, guess, strict=True)
    ]
    result = DICE(truth, guess)
    assert [result[f"dice_{label}"] for label in (1, 2, 3)] == pytest.approx(np.mean(by_frame, axis=0))
    assert result["dice"] == pytest.approx(np.mean(by_frame))


def test_perfect_mask():
    mask = DISC + 2 * (ELLIPSE > DISC)
    assert DICE([mask], [mask]) == {"dice": 1.0, "dice_1": 1.0, "dice_2": 1.0}
    assert HD95([mask], [mask], spacing=0.3)["hausdorff95"] == 0


@pytest.mark.parametrize("shift", [1, 4, 7])
def test_mask_shifted_by_k_pixels_has_distance_k_spacings(shift):
    spacing = (0.5, 0.25)
    box = np.zeros((40, 40), int)
    box[10:20, 5:25] = 1  # 10 rows and 20 columns: with a shift of k rows, k * 20 of 200 pixels are no longer shared.
    assert DICE([box], [np.roll(box, shift, axis=0)])["dice"] == pytest.approx(1 - shift / 10)
    assert HD95([box], [np.roll(box, shift, axis=0)], spacing=spacing)["hausdorff95"] == pytest.approx(0.5 * shift)
    assert HD95([box], [np.roll(box, shift, axis=1)], spacing=spacing)["hausdorff95"] == pytest.approx(0.25 * shift)


def test_structures_missing_in_a_mask():
    empty = np.zeros_like(DISC)
    both, none = [DISC, 2 * DISC], [DISC, empty]
    result = DICE(both, none)
    assert (result["dice_1"], result["dice_2"], result["dice"]) == (1.0, 0.0, 0.5), "each where either mask contains it"
    assert np.isnan(DICE([DISC], [DISC], structures=2)["dice_2"]) and DICE([DISC], [DISC], structures=2)["dice"] == 1
    result = HD95(both, none, spacing=(3, 4))
    assert (result["hausdorff95_1"], result["hausdorff95_2"]) == (0.0, 64 * 5.0), "the diagonal of the image"
    assert np.isnan(HD95([empty], [empty])["hausdorff95"])


def test_outline_is_the_pixels_with_a_neighbour_outside():
    outline = load_formula("hausdorff95").outline
    block = np.ones((4, 5), bool)
    assert outline(block).sum() == 14, "the border of the image is an edge"
    cross = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], bool)
    assert outline(cross).tolist() == [[False, True, False], [True, False, True], [False, True, False]]


def test_landmarks_by_hand():
    truth = [[[0, 0], [10, 0]], [[5, 5], [np.nan, np.nan]]]
    guess = [[[3, 4], [10, 6]], [[5, 5], [99, 99]]]
    assert LANDMARKS(truth, guess) == {
        "landmark_error": 11 / 3, "within_2": 1 / 3, "within_5": 2 / 3, "within_10": 1.0,
    }  # fmt: skip
    by_frame = LANDMARKS(truth, guess, spacing=[[2, 1], [1, 1]])  # (height, width): y counts double in the first frame
    assert by_frame["landmark_error"] == pytest.approx((np.hypot(3, 8) + 12) / 3)
    with pytest.raises(ValueError, match="1 of 2 reference points have only one coordinate"):
        LANDMARKS([[[0, 0], [np.nan, 3]]], [[[0, 0], [1, 1]]])
    with pytest.raises(ValueError, match="0 of 1 points are labelled"):
        LANDMARKS([[[np.nan, np.nan]]], [[[1.0, 1.0]]])
