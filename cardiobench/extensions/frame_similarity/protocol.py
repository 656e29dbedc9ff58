"""Measure how much cardiac motion the frame vectors preserve."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cardiobench.core.errors import NotApplicable
from cardiobench.data import catalog
from cardiobench.data.spec import Task
from cardiobench.embeddings.vectors import l2_normalize
from cardiobench.models.base import Encoder
from cardiobench.protocols.analysis import Analysis, AnalysisOutput, AnalysisProtocol
from cardiobench.stats.bootstrap import estimate, resample

COMPONENT = "protocol frame_similarity"
VERSION = 1

BETWEEN = "between patients"


@dataclass(frozen=True)
class FrameSimilarity(AnalysisProtocol):
    """Cosine similarity between all frames of a clip, over the test clips of a dataset.

    The matrix is the mean over clips (arXiv:2510.00520, Figure 2), and the reported mean excludes its diagonal. The
    cosine between frames of different patients is the reference: if frames are as similar between patients as within a
    clip, the model does not capture cardiac content. Models with one vector per clip do not apply.
    """

    name = "frame_similarity"
    from_embeddings = True

    def subjects(self, tasks: Sequence[Task]) -> Mapping[str, tuple[Task, ...]]:
        """Return each dataset of clips and its tasks."""
        subjects: dict[str, tuple[Task, ...]] = {}
        for task in tasks:
            if catalog.spec(task.dataset).media == "video":
                subjects[task.dataset] = (*subjects.get(task.dataset, ()), task)
        return subjects

    def analyze(self, analysis: Analysis, encoder: Encoder) -> AnalysisOutput:
        """Return mean cosines within clips and between patients, and the matrix for the most common clip length."""
        if not getattr(encoder, "frame_wise", False):
            raise NotApplicable(f"{encoder.name} encodes whole clips and has no vectors of frames")
        clips, patients = gather_test_clips(analysis)
        if not clips:
            raise NotApplicable(f"no test recording of {analysis.subject} has two frames or more")
        within = np.array([off_diagonal(frames).mean() for frames in clips])
        means = np.stack([frames.mean(axis=0) for frames in clips])
        _, first, patient_of_clip = np.unique(patients.astype(str), return_index=True, return_inverse=True)
        sums = np.zeros((len(first), means.shape[1]))
        np.add.at(sums, patient_of_clip, means)
        counts = np.bincount(patient_of_clip).astype(np.float64)

        def shares(weights: np.ndarray) -> dict[str, np.ndarray]:
            """Average over pairs of clips from different patients, using the product of their mean vectors."""
            times = weights[:, first]
            pairs = (times @ counts) ** 2 - times**2 @ counts**2
            total = ((times @ sums) ** 2).sum(axis=1) - times**2 @ (sums**2).sum(axis=1)
            between = np.divide(total, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)
            return {"within": weights @ within / weights.sum(axis=1), "between": between}

        draws = resample(shares, patients, analysis.resamples, analysis.seed)
        whole = {name: float(value[0]) for name, value in shares(np.ones((1, len(clips)))).items()}
        values = {
            "frames of a clip": estimate(whole["within"], draws["within"], patients),
            f"frames {BETWEEN}": estimate(whole["between"], draws["between"], patients),
            "difference": estimate(whole["within"] - whole["between"], draws["within"] - draws["between"], patients),
        }
        lengths = np.array([len(frames) for frames in clips])
        common = int(np.bincount(lengths).argmax())
        matrix = np.mean([frames @ frames.T for frames in clips if len(frames) == common], axis=0)
        one, other = np.indices(matrix.shape)
        table = pd.DataFrame({"frame": one.ravel(), "other": other.ravel(), "cosine": matrix.ravel()})
        gaps = pd.DataFrame({"frames_apart": np.abs(one - other).ravel(), "cosine": matrix.ravel()})
        apart = gaps.groupby("frames_apart", as_index=False)["cosine"].mean()
        clip_table = pd.DataFrame({"patient_id": patients, "frames": lengths, "mean_cosine": within})
        options = {"frames": common, "clips_in_matrix": int((lengths == common).sum())}
        return AnalysisOutput(values, {"matrix": table, "apart": apart, "clips": clip_table}, options)


def gather_test_clips(analysis: Analysis) -> tuple[list[np.ndarray], np.ndarray]:
    """Return unit vectors (frames, dim) and patients of distinct test clips with at least two frames."""
    clips: dict[str, tuple[np.ndarray, str]] = {}
    for task in analysis.tasks:
        data = analysis.data(task)
        for row in data.indices("test"):
            parts = data.embeddings.parts(row)
            if len(parts) > 1:
                clips[data.rows["id"].iloc[row]] = l2_normalize(parts.astype(np.float64)), data.patients[row]
    return [frames for frames, _ in clips.values()], np.array([patient for _, patient in clips.values()], dtype=object)


def off_diagonal(frames: np.ndarray) -> np.ndarray:
    """Return the cosines of distinct frames, (T * (T - 1),)."""
    cosines = frames @ frames.T
    return cosines[~np.eye(len(frames), dtype=bool)]
