"""Test the whole read-out on phantoms: choice of the penalty, Dice against the mean mask, cropped models, landmarks."""

from dataclasses import replace

import numpy as np
import pytest

from cardiobench.core.errors import NotApplicable
from cardiobench.data import catalog
from cardiobench.data.phantom.echo import echo_clip, echo_mask, echo_patients, end_systole
from cardiobench.embeddings.frame_tokens import FrameTokens, Letterbox
from cardiobench.extensions.dense.data import DenseData, FrameKey, first_by_hash, frame_id
from cardiobench.extensions.dense.geometry import WHOLE_SQUARE, Window
from cardiobench.extensions.dense.protocol import DensePrediction
from cardiobench.metrics.load import load_formula
from cardiobench.models.load import load_model
from cardiobench.tasks.dense_label import DenseLabel

MASKS = catalog.task("phantom_echo/lv_seg")


def labels_and_frames(counts, cohort):
    """Return end-diastole and end-systole in A4C of the first patients of a cohort, by split."""
    records = [record for record in echo_patients(cohort) if record.truth.view == "A4C"]
    splits = [split for split, count in counts.items() for _ in range(count)]
    labels, frames = [], []
    for record, split in zip(records, splits, strict=False):
        for phase, frame in (("ED", 0), ("ES", end_systole(record.truth))):
            cavity, muscle = (
                echo_mask(record.truth, frames=1, first=frame, part=part)[0] for part in ("cavity", "muscle")
            )
            labels.append(
                DenseLabel(
                    MASKS.name, record.patient_id, record.patient_id, split, record.id, frame,
                    mask=(cavity + 2 * muscle).astype(np.uint8), phase=phase, view="A4C",
                )
            )  # fmt: skip
            frames.append(echo_clip(record.truth, frames=1, first=frame)[0])
    return labels, frames


def data_of(labels, tokens, window=WHOLE_SQUARE):
    """Labels and tokens (n, rows, columns, d) in memory."""
    place = {frame_id(label): number for number, label in enumerate(labels)}
    return DenseData(
        MASKS,
        tuple(FrameKey(frame_id(label), label.patient, label.split) for label in labels),
        lambda split: iter([label for label in labels if label.split == split]),
        lambda ids: tokens[[place[name] for name in ids]],
        lambda label: Letterbox(*label.mask.shape),
        lambda side: window,
        tokens.shape[1:3],
    )


def dice(read_out, data):
    """Return the mean Dice of cavity and muscle over the test frames."""
    formula = load_formula("dice")
    values = [
        formula.dice_of_frame(label.mask, read_out.predict(box, window, tokens), 2)
        for label, box, window, tokens in data.with_tokens("test")
    ]
    return np.mean(values, axis=0)


@pytest.mark.slow
def test_untrained_network_beats_the_mean_mask():
    """Check for a Dice of 0.88 (cavity) and 0.75 (muscle); the mean mask reaches about 0.81 and 0.53."""
    from cardiobench.data.media.types import Clip

    labels, frames = labels_and_frames({"train": 60, "validation": 12, "test": 30}, cohort=300)
    encoder = FrameTokens(load_model("cardiobench/random-vit").encoder)
    vectors = [encoder.encode(encoder.transform(Clip(frame[None], np.zeros(1), 1)))[0].numpy() for frame in frames]
    tokens = np.array(vectors, dtype=np.float16).reshape(len(vectors), *encoder.grid, encoder.width)
    data = data_of(labels, tokens)
    fitted = DensePrediction().fit(data)
    cavity, muscle = dice(fitted.read_out, data)
    assert cavity >= 0.88
    assert muscle >= 0.75
    floor = dice(fitted.mean, data)
    assert 0.7 < floor[0] < cavity
    assert 0.4 < floor[1] < muscle


def drawn(n=24, side=32, shift=0.0):
    """Return labels of a bright square at a different place in each frame; tokens are the pixels of 8 x 8 patches of 4 x 4."""
    rng = np.random.default_rng(3)
    splits = np.repeat(["train", "validation", "test"], [n // 2, n // 4, n - n // 2 - n // 4])
    labels, tokens = [], []
    for number, split in enumerate(splits):
        mask = np.zeros((side, side), np.uint8)
        top, left = rng.integers(4, 14, 2)
        mask[top : top + 12, left : left + 12] = 1
        mask[top + 3 : top + 9, left + 3 : left + 9] = 2
        pixels = mask + 0.05 * rng.normal(size=mask.shape)
        tokens.append(pixels.reshape(8, 4, 8, 4).transpose(0, 2, 1, 3).reshape(8, 8, 16))
        patient = f"p{number}"
        labels.append(DenseLabel(MASKS.name, patient, patient, str(split), patient, 0, mask=mask))
    return labels, np.array(tokens, dtype=np.float16)


def test_planted_token_information_is_recovered():
    labels, tokens = drawn()
    data = data_of(labels, tokens)
    fitted = DensePrediction(penalties=(1e-1, 1e3)).fit(data)
    assert fitted.details["penalty"] == 1e-1
    assert (dice(fitted.read_out, data) > dice(fitted.mean, data) + 0.05).all()


def test_unseen_pixels_get_the_mean_mask():
    """Test a model that sees the left half: the right half equals the mean mask for any tokens."""
    labels, tokens = drawn()
    fitted = DensePrediction(penalties=(1.0,)).fit(data_of(labels, tokens, Window(0, 0, 0.5, 1)))
    box, window = Letterbox(32, 32), Window(0, 0, 0.5, 1)
    one, other = (fitted.read_out.predict(box, window, tokens[number]) for number in (0, 5))
    mean = fitted.mean.predict(box, window, tokens[0])
    np.testing.assert_array_equal(one[:, 16:], mean[:, 16:])
    np.testing.assert_array_equal(other[:, 16:], mean[:, 16:])


def test_training_patients_replace_validation():
    labels, tokens = drawn()
    labels = [replace(one, split="train" if one.split == "validation" else one.split) for one in labels]
    fitted = DensePrediction(penalties=(1.0,)).fit(data_of(labels, tokens))
    assert fitted.details["chosen_on"] == "3 held-out training patients"
    assert fitted.details["train_patients"] == 15
    with pytest.raises(NotApplicable, match="at least two are required"):
        DensePrediction().fit(data_of([one for one in labels if one.split == "test"], tokens))


def test_first_patients_by_hash():
    """Check that whole patients are drawn, in an order independent of their names, as many as fit."""
    patients = [f"p{number}" for number in range(20) for _ in range(4)]
    order = first_by_hash(patients)
    assert sorted(order) == sorted(set(patients)) != order
    assert first_by_hash(patients, 11) == order[:2]
    assert first_by_hash(patients, 1) == order[:1]
    assert first_by_hash(patients[::-1], 11) == order[:2]
    labels, _ = drawn()
    kept = DensePrediction(train_frames=5, validation_frames=2).select([*labels, replace(labels[0], reason="damaged")])
    assert [sum(one.split == split for one in kept) for split in ("train", "validation", "test")] == [5, 2, 6]
