"""Zero-shot: the recording is compared with sentences; nothing is learned, but for one threshold where that is asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field
from scipy.special import softmax
from sklearn.metrics import f1_score

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import NotApplicable
from cardiobench.data.prompts import prompt_digest, prompts
from cardiobench.data.spec import Task
from cardiobench.embeddings.store import l2_normalize
from cardiobench.models.base import Encoder, TextEncoder
from cardiobench.protocols.base import PredictionProtocol, ProtocolOutput, TaskData, aggregate
from cardiobench.protocols.numeric_prompts import RULES

PLACE = "<#>"
THRESHOLD = "threshold"
CANDIDATES = 200  # thresholds that are tried


def no_text_tower(encoder: Encoder) -> str:
    """Why a model without text cannot do zero-shot."""
    reason = getattr(encoder, "no_text_reason", "") or "it has no text tower"
    return f"{encoder.name} cannot compare recordings with prompts: {reason}"


@dataclass(frozen=True)
class ZeroShot(PredictionProtocol):
    """Prompt ensembles for classes, a ladder of numeric prompts for numbers.

    Class score = mean cosine of the pooled recording to the class's prompts; probabilities = softmax of the scores
    times the model's own logit scale. Numbers: `per_frame_median` and `rank_mean_median`, both always reported.
    Of two classes there is a second variant, `threshold`: the boundary between them is moved to where macro F1 on
    train and validation is best (test lines take no part), and the probabilities move with it.

    Attributes:
        share: of the numeric prompts that count as likest.
    """

    share: Annotated[float, Field(gt=0, le=1)] = 0.2

    name = "zero_shot"

    @classmethod
    def settings(cls, config: RunConfig) -> dict[str, Any]:
        """Return the options that the settings of a run decide."""
        return {"share": config.share}

    def variants(self, task: Task) -> tuple[str, ...]:
        """Two rules for numbers, two boundaries for two classes."""
        if task.kind == "regression":
            return tuple(RULES)
        return ("", THRESHOLD) if task.kind == "binary" else ("",)

    def predict(self, data: TaskData, encoder: Encoder, variant: str) -> ProtocolOutput:
        """Predictions for the test lines from the dataset's prompts."""
        if not isinstance(encoder, TextEncoder):
            raise NotApplicable(no_text_tower(encoder))
        texts, version = prompts(data.task, data.prompts)
        details = {
            "prompt_set": version,
            "prompt_file": data.prompts.name if data.prompts else "prompts.json",
            "prompt_digest": prompt_digest(data.task, data.prompts),
        }
        test = data.indices("test")
        if data.task.kind == "regression":
            values = self.numbers(data, encoder, texts["templates"], test, variant)
        else:
            values = self.classes(data, encoder, texts, test)
        if variant == THRESHOLD:
            known = data.indices("train", "validation")
            boundary = best_boundary(data, known, self.classes(data, encoder, texts, known))
            details |= {"threshold": boundary, "calibrated_on": len(known)}
            values = moved(values, boundary)
        return ProtocolOutput(test, values, details)

    def classes(
        self, data: TaskData, encoder: TextEncoder, texts: Mapping[str, Sequence[str]], lines: np.ndarray
    ) -> np.ndarray:
        """Class probabilities (n, classes) of these lines under prompts (class -> texts)."""
        pooled = l2_normalize(data.features[lines])
        scores = np.stack(
            [(pooled @ embed_texts(encoder, texts[name]).T).mean(axis=1) for name in data.task.classes], axis=1
        )
        return softmax(encoder.logit_scale * scores, axis=1)

    def numbers(
        self, data: TaskData, encoder: TextEncoder, templates: Sequence[str], lines: np.ndarray, rule: str
    ) -> np.ndarray:
        """Numbers (n,) of these lines from a ladder of prompts, by one of `numeric_prompts.RULES`."""
        sentences, numbers = ladder_sentences(data.task, templates)
        known = embed_texts(encoder, sentences)
        parts = (l2_normalize(data.embeddings.parts(line).astype(np.float64)) for line in lines)
        return np.array([RULES[rule](part @ known.T, numbers, self.share) for part in parts])


def ladder_sentences(task: Task, templates: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Every template with every number of the task's ladder, template by template, and the number in each."""
    if task.prompt_grid is None:
        raise NotApplicable(f"{task.name} has no ladder of numbers for its prompts")
    sentences = [template.replace(PLACE, text) for template in templates for text in task.prompt_grid.texts()]
    return sentences, np.tile(task.prompt_grid.values(), len(templates))


def embed_texts(encoder: TextEncoder, texts: Sequence[str]) -> np.ndarray:
    """Unit vectors of texts, float64 (n, dim)."""
    return encoder.encode_text(list(texts)).cpu().numpy().astype(np.float64)


def log_odds(probabilities: np.ndarray) -> np.ndarray:
    """Of the second of two classes, (n,), from probabilities (n, 2)."""
    return np.log(np.maximum(probabilities[:, 1], 1e-300)) - np.log(np.maximum(probabilities[:, 0], 1e-300))


def moved(probabilities: np.ndarray, boundary: float) -> np.ndarray:
    """Probabilities of two classes with the boundary between them at these log odds instead of 0."""
    odds = log_odds(probabilities) - boundary
    return softmax(np.stack([np.zeros_like(odds), odds], axis=1), axis=1)


def best_boundary(data: TaskData, lines: np.ndarray, probabilities: np.ndarray) -> float:
    """Log odds at which macro F1 of the units of these lines is best; of equals the one nearest the middle of them.

    Raises:
        NotApplicable: there is nothing to calibrate on.
    """
    labels = data.labels[lines]
    if len(np.unique(labels)) < 2:
        raise NotApplicable(f"{data.task.name} has fewer than two classes in train and validation here to calibrate on")
    unit_of = data.rows[data.task.unit_column].to_numpy()[lines]
    truth = dict(zip(unit_of, labels, strict=True))
    odds = np.unique(log_odds(probabilities))
    middles = (odds[1:] + odds[:-1]) / 2 if len(odds) > 1 else odds
    tried = np.unique(np.quantile(middles, np.linspace(0, 1, min(CANDIDATES, len(middles)))))
    scores = []
    for boundary in tried:
        answers = aggregate(data, ProtocolOutput(lines, moved(probabilities, boundary), {}))
        predicted = answers["y_pred"] == data.task.classes[1]
        scores.append(f1_score([truth[name] for name in answers["id"]], predicted.astype(int), average="macro"))
    equal = np.flatnonzero(np.array(scores) >= max(scores) - 1e-12)
    return float(tried[equal[len(equal) // 2]])
