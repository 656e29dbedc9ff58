"""Test alignment of recordings with the numeric axis of a model's text embeddings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd

from cardiobench.core.errors import NotApplicable
from cardiobench.data.prompts import prompt_digest
from cardiobench.data.prompts import prompts as task_prompts
from cardiobench.data.spec import Task
from cardiobench.embeddings.vectors import l2_normalize
from cardiobench.metrics.load import load_formula, load_metric
from cardiobench.metrics.scoring_input import ScoringInput
from cardiobench.models.base import Encoder
from cardiobench.protocols import maps
from cardiobench.protocols.analysis import Analysis, AnalysisOutput, AnalysisProtocol
from cardiobench.protocols.zero_shot import embed_texts, numeric_sentences, prompt_calls, text_encoder
from cardiobench.results.analysis_result import point_estimate
from cardiobench.stats.bootstrap import estimate, resample
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.information import p_of_correlation

COMPONENT = "protocol alignment"
VERSION = 1


def formula() -> ModuleType:
    """Load the module of the metric, which also computes the axis."""
    return load_formula("text_axis_pearson")


@dataclass(frozen=True)
class Alignment(AnalysisProtocol):
    """Correlate measured values with projections on the text axis, the first principal component of numeric prompts.

    The embedding of a number is the mean of unit vectors of its prompt templates. Pooled test embeddings are scaled to
    unit length and projected onto the axis (arXiv:2510.00520, section on text alignment). Intervals are computed over
    patients.

    Attributes:
        draw_maps: Whether to draw separate UMAP maps of prompts and recordings by cosine distance, as in the scripts of
            the paper. The maps are illustrative and do not affect scores.
    """

    draw_maps: bool = False

    name = "alignment"
    formulas = ("regression_report", "text_axis_pearson")
    from_embeddings = True

    def subjects(self, tasks: Sequence[Task]) -> Mapping[str, tuple[Task, ...]]:
        """Return all regression tasks."""
        return {task.name: (task,) for task in tasks if task.rules.answer == "number"}

    def texts(self, tasks: Sequence[Task], prompts: Path | None) -> list[list[str]]:
        """Return the task's numeric prompts."""
        (task,) = tasks
        return prompt_calls(task, task_prompts(task, prompts)[0])

    def analyze(self, analysis: Analysis, encoder: Encoder) -> AnalysisOutput:
        """Return Pearson's r along the axis and the projections for the figure."""
        (task,) = analysis.tasks
        encoder = text_encoder(encoder)
        data = analysis.data(task)
        templates = task_prompts(task, data.prompts)[0]["templates"]
        sentences, numbers = numeric_sentences(task, templates)
        vectors = embed_texts(encoder, sentences).reshape(len(templates), -1, encoder.dim)
        texts, prompt_grid = l2_normalize(vectors).mean(axis=0), numbers[: len(numbers) // len(templates)]
        test = data.indices("test")
        recordings, labels, patients = l2_normalize(data.features[test]), data.labels[test], data.patients[test]
        metric = formula()
        scores = metric.compute(labels, recordings, texts, prompt_grid, seed=analysis.seed)
        axis, _ = metric.text_axis(texts, prompt_grid)
        if axis is None:
            raise NotApplicable(
                f"{encoder.name} gives the same vector for every prompt of {task.name}, so they define no axis"
            )
        sample = ScoringInput(labels, recordings @ axis)
        draws = resample(
            lambda weights: load_metric("regression_report").resamples(sample, weights),
            patients,
            analysis.resamples,
            analysis.seed,
        )
        p_value = p_of_correlation(sample.y_pred, labels, Clusters.of(patients), seed=analysis.seed)
        r = "text_axis_pearson"
        values = {
            r: estimate(scores[r], draws["pearson"], patients),
            "spearman": estimate(scores["spearman"], draws["spearman"], patients),
            "r2": estimate(scores["r2"], draws["pearson"] ** 2, patients),
            "explained_variance": point_estimate(scores["explained_variance"], n=len(texts)),
            "p_value": point_estimate(p_value, n=len(test), n_patients=len(set(patients))),
        }
        second, texts = main_direction_across(texts, axis), l2_normalize(texts)
        tables = {
            "texts": projections(texts, axis, second, number=prompt_grid),
            "recordings": projections(recordings, axis, second, id=data.rows["id"].to_numpy()[test], measured=labels),
        }
        shown = {"texts": texts, "recordings": recordings} if self.draw_maps else {}
        notes = [
            f"no map of {len(v)} {name}: it needs {maps.FEWEST}" for name, v in shown.items() if len(v) < maps.FEWEST
        ]
        tables |= {name: with_map(tables[name], v) for name, v in shown.items() if len(v) >= maps.FEWEST}
        options = {"prompts": prompt_digest(task, data.prompts), "templates": len(templates), "unit": task.unit}
        return AnalysisOutput(values, tables, options, tuple(notes))


def with_map(table: pd.DataFrame, vectors: np.ndarray) -> pd.DataFrame:
    """Return vectors with their `x` and `y` coordinates in the UMAP map of the echo paper."""
    (coordinates,) = maps.umap_maps(vectors, (maps.ECHO_PAPER,), metric="cosine").values()
    return table.assign(x=coordinates[:, 0], y=coordinates[:, 1])


def main_direction_across(texts: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Return the unit vector (d,) of largest variance of texts (n, d) orthogonal to the axis (d,); zeros without variance."""
    centred = l2_normalize(texts) - l2_normalize(texts).mean(axis=0)
    rest = centred - np.outer(centred @ axis, axis)
    _, strength, directions = np.linalg.svd(rest, full_matrices=False)
    return directions[0] if strength[0] > 1e-9 else np.zeros_like(axis)


def projections(vectors: np.ndarray, axis: np.ndarray, second: np.ndarray, **columns) -> pd.DataFrame:
    """Return coordinates along and across the axis, with additional columns."""
    return pd.DataFrame({**columns, "along": vectors @ axis, "across": vectors @ second})
