"""Compare ridge regression from sums with scikit-learn on all tokens; test further variants of the protocol."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from cardiobench.core.errors import NotApplicable
from cardiobench.data import catalog
from cardiobench.extensions.dense.head import split_cells
from cardiobench.extensions.dense.protocol import DensePrediction
from cardiobench.extensions.dense.ridge import RidgeSums
from cardiobench.extensions.dense.variants import DenseVariant
from tests.extensions.dense.test_phantoms import data_of, dice, drawn


def test_sums_give_the_ridge_regression_of_all_tokens():
    rng = np.random.default_rng(0)
    tokens = (rng.normal(2, 1, (30, 2, 2, 5)) * [1, 3, 1, 0, 2]).astype(np.float16)  # A single number is not enough.
    cells = rng.uniform(size=(30, 4, 4, 3)).astype(np.float32)
    targets = split_cells(cells, (2, 2))
    sums = RidgeSums((2, 2))
    for one, target in zip(tokens, targets, strict=True):
        sums.update(one, target)
    x = tokens.astype(float).reshape(30, 4, 5)
    centred = x - x.mean(axis=0)
    scale = np.where(centred.std(axis=(0, 1)) > 0, centred.std(axis=(0, 1)), 1)
    flat = targets.reshape(30, 4, -1)
    design = (centred / scale).reshape(-1, 5)
    for penalty, head in sums.fit((0.01, 1.0)):
        ridge = Ridge(alpha=penalty * len(design), fit_intercept=False)
        ridge.fit(design, (flat - flat.mean(axis=0)).reshape(len(design), -1))
        expected = (flat.mean(axis=0) + ridge.predict(design).reshape(flat.shape)).reshape(targets.shape).clip(0)
        np.testing.assert_allclose(split_cells(head.predict(tokens), (2, 2)), expected, atol=1e-4)


def test_ridge_predicts_from_tokens():
    labels, tokens = drawn()
    data = data_of(labels, tokens)
    fitted = DensePrediction().fit(data, DenseVariant(further="ridge"))
    assert (dice(fitted.read_out, data) > dice(fitted.mean, data) + 0.02).all()
    assert fitted.details["train_frames"] == 12 and fitted.details["width"] == 16


def test_few_patients_are_the_first_ones():
    labels, tokens = drawn()
    data = data_of(labels, tokens)
    protocol = DensePrediction(penalties=(1.0,), patients=(3, 12))
    assert protocol.fit(data, DenseVariant(patients=3)).details["train_patients"] == 3
    assert protocol.split_patients(data, 3)[0] == protocol.split_patients(data)[0][:3]
    with pytest.raises(NotApplicable, match="12 training patients here, not more than 12"):
        protocol.fit(data, DenseVariant(patients=12))


def test_further_read_outs_have_own_names():
    masks, points = catalog.task("phantom_echo/lv_seg"), catalog.task("phantom_echo/landmarks")

    def names(protocol, task):
        return [one.name for one in protocol.read_outs(task)]

    assert names(DensePrediction(), masks) == [""]
    protocol = DensePrediction(further=("clip", "ridge"), patients=(5,))
    assert names(protocol, masks) == ["", "clip", "ridge", "5_patients"]
    assert names(protocol, points) == [
        "heatmap", "global", "heatmap_clip", "global_clip", "heatmap_ridge", "heatmap_5_patients", "global_5_patients",
    ]  # fmt: skip


def test_search_ends_after_two_worse_penalties():
    labels, tokens = drawn()
    data = data_of(labels, tokens)
    tried = DensePrediction(penalties=(1e4, 1e-1, 1e3, 1e2, 1e-2)).fit(data).details
    assert tried["penalties_tried"][:4] == [1e4, 1e3, 1e2, 1e-1], "as good as the mean mask is not worse"
    errors = iter([0.3, 0.2, 0.25, 0.22, 0.1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cardiobench.extensions.dense.protocol.validation_error", lambda *_: next(errors))
        stopped = DensePrediction(penalties=(1e4, 1e3, 1e2, 1e1, 1.0)).fit(data).details
    assert stopped["penalties_tried"] == [1e4, 1e3, 1e2, 1e1] and stopped["penalty"] == 1e3
    assert stopped["validation_error"] == 0.2
