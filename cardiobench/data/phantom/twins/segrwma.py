"""The synthetic twin of SegRWMA: three apical views, some of them with a part of the wall that does not move."""

from pathlib import Path

import numpy as np

from cardiobench.data.phantom.echo import EchoTruth, cm_per_pixel, echo_clip
from cardiobench.data.phantom.echo_cohort import draw_heart, draw_quality, draw_sex
from cardiobench.data.phantom.twins.pictures import fps_of_whole_beats, letterbox
from cardiobench.data.phantom.twins.published import choose, published_split, save_nifti

_SIZE, _HEIGHT, _WIDTH = 80, 80, 104


def write(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` patients of the published split into `Regional_wall_motion_abnormality/wallMotion/`.

    Each has its 2D sequences, every eighth one those with contrast (LVO, MCE), too. A sequence has the published
    number of frames, one beat over and over, and is at end-diastole in the first annotated frame.
    """
    rng = np.random.default_rng([seed, 0])
    table = choose(published_split("segrwma", "recordings"), patients, "abnormal", rng)
    for index, (_, rows) in enumerate(table.groupby("patient_id", sort=False)):
        heart = draw_heart(rng, float(np.clip(rng.normal(58, 7), 40, 75)), draw_sex(rng))
        rate = float(rng.uniform(60, 95))
        for row in rows.itertuples():
            quality = draw_quality(rng, poor=0.1)
            truth = EchoTruth(
                **heart, view=row.view, heart_rate=rate, image_quality=quality, seed=int(rng.integers(2**31)),
                akinetic=row.label == "abnormal",
            )  # fmt: skip
            if row.modality == "2D" or index % 8 == 0:
                frames = letterbox(_looped(truth, int(row.n_frames), int(row.key_frame)), _HEIGHT, _WIDTH)
                path = out / "Regional_wall_motion_abnormality" / row.path
                save_nifti(path, frames, 10.0 * cm_per_pixel(truth, _SIZE))


def _looped(truth: EchoTruth, frames: int, diastole: int) -> np.ndarray:
    fps = fps_of_whole_beats(truth.heart_rate, near=30.0)
    beat = echo_clip(truth, frames=round(60.0 / truth.heart_rate * fps), size=_SIZE, fps=fps)[..., 0]
    return beat[(np.arange(frames) - diastole) % len(beat)]
