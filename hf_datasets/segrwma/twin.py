"""Synthetic twin of SegRWMA: three apical views, some with a part of the wall that does not move."""

from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

from cardiobench.data.phantom.echo import EchoTruth, cm_per_pixel, echo_clip
from cardiobench.data.phantom.echo_cohort import draw_heart, draw_quality, draw_sex
from cardiobench.data.phantom.files import save_nifti
from cardiobench.data.phantom.heart import View
from cardiobench.data.phantom.pictures import fps_of_whole_beats, letterbox
from cardiobench.data.phantom.splits import choose, published_split

_SIZE, _HEIGHT, _WIDTH = 80, 80, 104


def write(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` patients of the published split to `Regional_wall_motion_abnormality/wallMotion/`.

    All patients have 2D sequences, and every eighth patient also has contrast sequences (LVO, MCE). A sequence repeats
    one beat, with end-diastole in its key frame. Labels and key frames are written to `segrwma_split.csv` in the format
    of the published evaluator, because the release itself has no known file of labels.
    """
    rng = np.random.default_rng([seed, 0])
    table = choose(published_split(Path(__file__).parent, "recordings"), patients, rng)
    root, labels = out / "Regional_wall_motion_abnormality", []
    for index, (patient, rows) in enumerate(table.groupby("patient_id", sort=False)):
        heart = draw_heart(rng, float(np.clip(rng.normal(58, 7), 40, 75)), draw_sex(rng))
        rate = float(rng.uniform(60, 95))
        for row in rows.itertuples():
            _, view, *mode = row.id.split("_")
            quality = draw_quality(rng, poor=0.1)
            truth = EchoTruth(
                **heart, view=cast(View, view), heart_rate=rate, image_quality=quality, seed=int(rng.integers(2**31)),
                akinetic=row.diseased,
            )  # fmt: skip
            frames, key_frame = int(rng.integers(48, 80)), int(rng.integers(16, 40))
            if not mode or index % 8 == 0:
                modality = mode[0] if mode else "2D"
                path = f"wallMotion/{patient}-{modality}-{view}_image.nii.gz"
                clip = letterbox(_looped(truth, frames, key_frame), _HEIGHT, _WIDTH)
                save_nifti(root / path, clip, 10.0 * cm_per_pixel(truth, _SIZE))
                labels.append((patient, f"{root.name}/{path}", modality, view, frames, key_frame, int(row.diseased)))
    columns = ["patient_id", "path", "modality", "view", "n_frames", "first_annotated_frame_index", "abnormal"]
    pd.DataFrame(labels, columns=columns).to_csv(root / "segrwma_split.csv", index=False)


def _looped(truth: EchoTruth, frames: int, diastole: int) -> np.ndarray:
    fps = fps_of_whole_beats(truth.heart_rate, near=30.0)
    beat = echo_clip(truth, frames=round(60.0 / truth.heart_rate * fps), size=_SIZE, fps=fps)[..., 0]
    return beat[(np.arange(frames) - diastole) % len(beat)]
