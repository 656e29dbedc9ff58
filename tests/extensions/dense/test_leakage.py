"""Check that no read-out learns from test frames, and that penalties minimise scikit-learn's error on validation frames."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cardiobench.data import catalog
from cardiobench.embeddings.frame_tokens import Letterbox
from cardiobench.extensions.dense.geometry import WHOLE_SQUARE
from cardiobench.extensions.dense.protocol import DensePrediction
from cardiobench.extensions.dense.readouts import fit_read_outs
from cardiobench.extensions.dense.variants import DenseVariant
from tests.extensions.dense.test_phantoms import data_of, drawn

POINTS = catalog.task("phantom_echo/landmarks")
SIDE, BOX = 32, Letterbox(32, 32)
NOISE = 4.0
PENALTIES = (1e-3, 1e-1, 1.0, 1e1, 1e3)
DENSE = DensePrediction(penalties=PENALTIES, ridge_penalties=PENALTIES, further=("ridge",), patients=(8,))


def frames(task):
    """Return squares as masks, or their corners and centre as points, with noisy tokens that show them."""
    labels, tokens = drawn()
    rng = np.random.default_rng(0)
    tokens = (tokens + NOISE * rng.normal(size=tokens.shape)).astype(np.float16)
    if task.rules.frame_label == "points":
        corners = [np.argwhere(one.mask > 0)[[0, -1], ::-1].astype(float) for one in labels]
        points = [np.vstack([two, two.mean(axis=0), two[0] + 1]) for two in corners]
        labels = [replace(one, mask=None, points=own) for one, own in zip(labels, points, strict=True)]
    return [replace(one, task=task.name) for one in labels], tokens


def read(task, labels, tokens):
    return replace(data_of(labels, tokens), task=task, box=lambda label: BOX)


def spoilt(labels, tokens):
    """Return data with other tokens and labels for every test frame."""
    other = tokens.copy()
    changed = []
    for number, one in enumerate(labels):
        if one.split == "test":
            other[number] = 3 - 2 * tokens[number]
            mask = None if one.mask is None else one.mask[::-1].copy()
            one = replace(one, mask=mask, points=None if one.points is None else SIDE - one.points)
        changed.append(one)
    return changed, other


def both_tasks():
    for task in (catalog.task("phantom_echo/lv_seg"), POINTS):
        yield from ((task, variant) for variant in DENSE.read_outs(task))


@pytest.mark.parametrize(
    ("task", "variant"), list(both_tasks()), ids=lambda one: getattr(one, "kind", None) or one.name
)
def test_read_outs_do_not_learn_from_test(task, variant):
    labels, tokens = frames(task)
    before, after = (DENSE.fit(read(task, *given), variant) for given in ((labels, tokens), spoilt(labels, tokens)))
    assert before.details == after.details and before.details["penalties_tried"]
    for frame in tokens[-6:]:
        answers = [one.read_out.predict(BOX, WHOLE_SQUARE, frame) for one in (before, after)]
        np.testing.assert_array_equal(*answers)
    np.testing.assert_array_equal(*(one.mean.predict(BOX, WHOLE_SQUARE, tokens[0]) for one in (before, after)))


def test_mask_penalty_has_best_scikit_learn_f1():
    """Check that the Dice of a structure is its F1, and that the error is 1 minus the mean over structures and frames."""
    labels, tokens = frames(task := catalog.task("phantom_echo/lv_seg"))
    data = read(task, labels, tokens)
    variant = DenseVariant(further="ridge")
    fitted = DENSE.fit(data, variant)
    errors = {}
    for penalty, read_out in fit_read_outs(data, data.patients("train"), variant, PENALTIES).path:
        scores = [
            f1_score(one.mask.ravel(), read_out.predict(BOX, WHOLE_SQUARE, own).ravel(), labels=[1, 2], average="macro")
            for one, own in zip(labels, tokens, strict=True)
            if one.split == "validation"
        ]
        errors[penalty] = 1 - np.mean(scores)
    assert fitted.details["penalty"] == min(errors, key=errors.get) not in (PENALTIES[0], PENALTIES[-1])
    assert fitted.details["validation_error"] == pytest.approx(min(errors.values()))


def test_global_penalty_equals_scikit_learn_ridge():
    labels, tokens = frames(POINTS)
    fitted = DENSE.fit(read(POINTS, labels, tokens), DenseVariant("global"))
    means = tokens.astype(float).mean(axis=(1, 2))
    points = np.array([one.points for one in labels])
    split = np.array([one.split for one in labels])
    errors = {}
    for penalty in PENALTIES:
        count = int((split == "train").sum())
        model = make_pipeline(StandardScaler(), Ridge(alpha=penalty * count))
        model.fit(means[split == "train"], points[split == "train"].reshape(count, -1))
        answers = model.predict(means[split == "validation"]).reshape(-1, 4, 2)
        errors[penalty] = np.linalg.norm(answers - points[split == "validation"], axis=2).mean() / SIDE
    assert fitted.details["penalty"] == min(errors, key=errors.get)
    assert fitted.details["validation_error"] == pytest.approx(min(errors.values()))
    assert len({round(error, 6) for error in errors.values()}) == len(PENALTIES)
