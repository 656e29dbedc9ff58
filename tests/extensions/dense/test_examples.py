"""Test example images of masks and landmarks: which frames are shown, and what is drawn on them."""

from base64 import b64decode
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pandas as pd
from PIL import Image

from cardiobench.core.errors import BadMedia
from cardiobench.data import catalog
from cardiobench.data.media.types import Clip
from cardiobench.extensions.dense.examples import frame_examples, pick, picture_of
from cardiobench.tasks.dense_label import DenseLabel

MASKS, POINTS = catalog.task("phantom_echo/lv_seg"), catalog.task("phantom_echo/landmarks")


def test_worst_median_and_best():
    places = pick(20)
    assert [position for position, place in places.items() if place == "worst"] == [0, 1, 2, 3]
    assert [position for position, place in places.items() if place == "middle"] == [8, 9, 10, 11]
    assert [position for position, place in places.items() if place == "best"] == [16, 17, 18, 19]
    assert list(pick(2)) == [0, 1]
    assert pick(0) == {}


def stand_in(labels):
    """Return a dataset of the frames of these labels."""

    def labelled_frame(label):
        if label.recording == "bad":
            raise BadMedia("it is truncated")
        return Clip(np.full((1, 20, 30, 3), 80, np.uint8), np.zeros(1), 1)

    rows = pd.DataFrame({"id": [label.recording for label in labels]})
    return SimpleNamespace(
        task_rows=lambda task: rows,
        dense_labels=lambda task, wanted: [label for label in labels if label.recording in set(wanted["id"])],
        labelled_frame=labelled_frame,
    )


def test_masks_on_their_frames():
    mask = np.zeros((20, 30), np.uint8)
    mask[5:15, 5:15] = 1
    content = BytesIO()
    Image.fromarray(mask).save(content, format="PNG")
    names = ("good", "bad", "gone")
    labels = [DenseLabel(MASKS.name, name, name, "test", name, 3, mask=mask) for name in names[:2]]
    frame = pd.DataFrame({
        "id": names, "recording": names, "frame": 3, "answer": [content.getvalue()] * 3,
        "dice_cavity": [0.9, 0.2, 0.5], "dice_myocardium": [0.7, 0.4, 0.5],
    })  # fmt: skip
    shown = list(frame_examples(stand_in(labels), MASKS, frame))
    assert [row.id for row in shown] == ["bad", "gone", "good"]  # The worst frame is first.
    assert [row.prediction for row in shown] == ["dice 30.0 %", "dice 50.0 %", "dice 80.0 %"]
    assert "truncated" in shown[0].image
    assert "not here" in shown[1].image
    assert shown[2].image.startswith('<img alt="" src="data:image/jpeg')


def test_points_on_their_frames():
    points = np.array([[3.0, 4.0], [8.0, 9.0], [np.nan, np.nan], [20.0, 15.0]])
    label = DenseLabel(POINTS.name, "one", "one", "test", "one", 0, points=points)
    numbers = {f"landmark_error_{name}": [2.0] for name in POINTS.structures}
    frame = pd.DataFrame({"id": ["one"], "recording": ["one"], "frame": 0, "answer": [[1.0] * 8], **numbers})
    (row,) = frame_examples(stand_in([label]), POINTS, frame)
    assert row.prediction == "landmark_error 2.00 mm"
    assert row.image.startswith("<img")


def test_nearly_correct_point_is_visible():
    """Check that an arrow shorter than the cross at its start is hidden."""
    points = np.array([[3.0, 4.0], [8.0, 9.0], [12.0, 12.0], [20.0, 15.0]])
    picture = picture_of(
        stand_in([]), DenseLabel(POINTS.name, "one", "one", "test", "one", 0, points=points), (points + 0.4).ravel()
    )
    content = b64decode(picture.partition("base64,")[2].partition('"')[0].replace("&#43;", "+"))
    red, _, blue = np.asarray(Image.open(BytesIO(content)).convert("RGB")).astype(int).transpose(2, 0, 1)
    assert ((blue > 180) & (red < 120)).sum() >= 4 * 5, "at least five pixels per point"
