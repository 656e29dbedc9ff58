"""Zero-shot prediction by comparing recordings with prompts; only one variant learns a threshold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

import numpy as np
from pydantic import Field
from scipy.special import softmax

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import NotApplicable
from cardiobench.core.setting import Seed
from cardiobench.data.prompts import PLACEHOLDER, prompt_digest
from cardiobench.data.prompts import prompts as task_prompts
from cardiobench.data.spec import Task
from cardiobench.embeddings.vectors import l2_normalize
from cardiobench.models.base import Encoder, TextEncoder
from cardiobench.protocols.base import PredictionProtocol, ProtocolOutput, TaskData, Units
from cardiobench.protocols.learnable import two_answers
from cardiobench.protocols.numeric_prompts import RULES
from cardiobench.protocols.options import Refits
from cardiobench.protocols.refits import redrawn_rows
from cardiobench.stats.information import macro_f1

COMPONENT = "protocol zero_shot"
VERSION = 2

THRESHOLD = "threshold"
MEAN_COSINE = "mean_cosine"
MAX_CANDIDATES = 200  # Number of tried thresholds.


def text_encoder(encoder: Encoder) -> TextEncoder:
    """Return the model if it encodes texts, or raise `NotApplicable`."""
    if not hasattr(encoder, "encode_text"):  # Workers receive only this method of a `TextEncoder`.
        raise NotApplicable(no_text_tower(encoder))
    return cast(TextEncoder, encoder)


def no_text_tower(encoder: Encoder) -> str:
    """Return the reason why a model without text cannot do zero-shot prediction."""
    reason = getattr(encoder, "no_text_reason", "") or "it has no text tower"
    return f"{encoder.name} cannot compare recordings with prompts: {reason}"


@dataclass(frozen=True)
class ZeroShot(PredictionProtocol):
    """Compare recordings with prompt ensembles for classes, or with a grid of numeric prompts.

    The score of a class is the mean cosine of the pooled recording to the prompts of the class; probabilities are the
    softmax of the scores times the model's logit scale. Numbers are decoded by `per_frame_median` and
    `rank_mean_median`, which are both reported. In multilabel tasks the score of each class is its mean cosine mapped
    from [-1, 1] to [0, 1], which ranks recordings and is not a probability. Two classes have a second variant,
    `threshold`, with the threshold that maximises macro F1 on train and validation (test rows are not used); the
    probabilities are shifted with it.

    `binary_rule="mean_cosine"` adds EchoCLIP's rule for two classes as the variant `mean_cosine`: the mean cosine of
    single frames to the prompts of the positive class, with a threshold from train and validation (Christensen et al.,
    Nature Medicine 2024).

    Attributes:
        share: Fraction of the most similar numeric prompts to use.
        binary_rule: "contrast" compares the prompts of the two classes; "mean_cosine" adds the other rule.
        comparison_refits: Number of thresholds from other draws of the training patients, whose answers are kept for
            comparisons with other models.
        seed: Seed of these draws.
    """

    share: Annotated[float, Field(gt=0, le=1)] = 0.2
    binary_rule: Literal["contrast", "mean_cosine"] = "contrast"
    comparison_refits: Refits = 20
    seed: Seed = 0

    name = "zero_shot"
    from_embeddings = True
    headline_rank = 4

    @classmethod
    def settings(cls, config: RunConfig) -> dict[str, Any]:
        """Return the options that follow from the settings of a run."""
        return {"seed": config.seed}

    def without_refits(self) -> Self:
        """Return the same protocol without refits."""
        return replace(self, comparison_refits=0)

    def variants(self, task: Task) -> tuple[str, ...]:
        """Return the variants: two decoding rules for numbers, two thresholds for two classes."""
        if task.rules.answer == "number":
            return tuple(RULES)
        if not task.rules.two_classes:
            return ("",)
        return ("", THRESHOLD) if self.binary_rule == "contrast" else ("", THRESHOLD, MEAN_COSINE)

    def check_encoder(self, encoder: Encoder, task: Task) -> None:
        """Refuse a model without a text tower."""
        text_encoder(encoder)

    def reads_training(self, variant: str) -> bool:
        """Return whether a variant has a threshold from train and validation."""
        return variant in (THRESHOLD, MEAN_COSINE)

    def texts(self, tasks: Sequence[Task], prompts: Path | None) -> list[list[str]]:
        """Return the numeric sentences of a task, or the prompts of each class."""
        (task,) = tasks
        return prompt_calls(task, task_prompts(task, prompts)[0])

    def predict(self, data: TaskData, encoder: Encoder, variant: str) -> ProtocolOutput:
        """Predict the test rows from the dataset's prompts."""
        self.check(data.task)
        encoder = text_encoder(encoder)
        texts, version = task_prompts(data.task, data.prompts)
        details: dict[str, Any] = {
            "prompt_set": version,
            "prompt_file": data.prompts.name if data.prompts else "prompts.json",
            "prompt_digest": prompt_digest(data.task, data.prompts),
        }
        test = data.indices("test")
        if data.task.rules.answer == "number":
            values = self.predict_numbers(data, encoder, texts["templates"], test, variant)
        else:
            predict = self.predict_by_positive_prompts if variant == MEAN_COSINE else self.predict_classes
            values = predict(data, encoder, texts, test)
        if variant in (THRESHOLD, MEAN_COSINE):
            train = data.indices("train", "validation")
            if not two_answers(data.labels[train]):
                raise NotApplicable(
                    f"{data.task.name} has fewer than two classes in train and validation here to calibrate on"
                )
            of_train = predict(data, encoder, texts, train)
            draws = list(redrawn_rows(data, train, self.comparison_refits, self.seed))
            threshold, *others = best_thresholds(data, train, of_train, [train, *draws])
            details |= {"threshold": threshold, "calibrated_on": len(train)}
            return ProtocolOutput(
                test,
                shift_threshold(values, threshold),
                details,
                refits=tuple(shift_threshold(values, other) for other in others),
                drawn=tuple(draws),
                drawn_with=self.seed,
            )
        return ProtocolOutput(test, values, details)

    def predict_classes(
        self, data: TaskData, encoder: TextEncoder, texts: Mapping[str, Sequence[str]], indices: np.ndarray
    ) -> np.ndarray:
        """Return class probabilities, or scores of labels, (n, classes) of these rows under prompts (class -> texts)."""
        pooled = l2_normalize(data.features[indices])
        scores = np.stack(
            [(pooled @ embed_texts(encoder, texts[name]).T).mean(axis=1) for name in data.task.classes], axis=1
        )
        if data.task.rules.answer == "labels":
            return np.clip((1 + scores) / 2, 0, 1)
        return softmax(encoder.logit_scale * scores, axis=1)

    def predict_by_positive_prompts(
        self, data: TaskData, encoder: TextEncoder, texts: Mapping[str, Sequence[str]], indices: np.ndarray
    ) -> np.ndarray:
        """Return probabilities (n, 2) whose log odds are the scaled mean cosine of frames and positive prompts, with threshold 0."""
        prompt_vectors = embed_texts(encoder, texts[data.task.classes[1]])
        cosines = [
            (l2_normalize(data.embeddings.parts(row).astype(np.float64)) @ prompt_vectors.T).mean() for row in indices
        ]
        odds = encoder.logit_scale * np.array(cosines)
        return softmax(np.stack([np.zeros_like(odds), odds], axis=1), axis=1)

    def predict_numbers(
        self, data: TaskData, encoder: TextEncoder, templates: Sequence[str], indices: np.ndarray, rule: str
    ) -> np.ndarray:
        """Return numbers (n,) for these rows from numeric prompts, by one of `numeric_prompts.RULES`."""
        sentences, numbers = numeric_sentences(data.task, templates)
        prompt_vectors = embed_texts(encoder, sentences)
        parts = (l2_normalize(data.embeddings.parts(row).astype(np.float64)) for row in indices)
        return np.array([RULES[rule](part @ prompt_vectors.T, numbers, self.share) for part in parts])


def numeric_sentences(task: Task, templates: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Return every template filled with every number of the task's grid, template by template, and the numbers (n,).

    Raises:
        NotApplicable: The task has no grid of numbers.
    """
    if task.prompt_grid is None:
        raise NotApplicable(f"{task.name} has no grid of numbers for its prompts")
    sentences = [template.replace(PLACEHOLDER, text) for template in templates for text in task.prompt_grid.texts()]
    return sentences, np.tile(task.prompt_grid.values(), len(templates))


def prompt_calls(task: Task, texts: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the texts that zero-shot encodes for a task, those of one call together.

    Args:
        task: Task to answer.
        texts: Class, or "templates" -> sentences.
    """
    if task.rules.answer == "number":
        return [numeric_sentences(task, texts["templates"])[0]]
    return [list(texts[name]) for name in task.classes]


def embed_texts(encoder: TextEncoder, texts: Sequence[str]) -> np.ndarray:
    """Return unit vectors of texts. The array is float64 (n, dim)."""
    vectors = encoder.encode_text(list(texts))
    return vectors if isinstance(vectors, np.ndarray) else vectors.cpu().numpy().astype(np.float64)


def log_odds(probabilities: np.ndarray) -> np.ndarray:
    """Return the log odds of the second class, (n,), from probabilities (n, 2)."""
    return np.log(np.maximum(probabilities[:, 1], 1e-300)) - np.log(np.maximum(probabilities[:, 0], 1e-300))


def shift_threshold(probabilities: np.ndarray, threshold: float) -> np.ndarray:
    """Return probabilities (n, 2) shifted so that the log odds `threshold` become 0, which is a probability of 0.5."""
    odds = log_odds(probabilities) - threshold
    return softmax(np.stack([np.zeros_like(odds), odds], axis=1), axis=1)


def best_thresholds(
    data: TaskData, indices: np.ndarray, probabilities: np.ndarray, draws: Sequence[np.ndarray]
) -> list[float]:
    """Return the log odds that maximise the macro F1 of the units of each draw; of ties the middle one.

    Args:
        data: Data of the task.
        indices: Indices of the rows to calibrate on, (n,).
        probabilities: Probabilities of two classes for these rows, (n, 2).
        draws: Indices of the drawn rows, those of patients drawn twice twice.
    """
    labels = data.labels[indices]
    units = Units.of(data, indices)
    label_of = dict(zip(data.rows[data.task.unit_column].to_numpy()[indices], labels, strict=True))
    truth = np.array([label_of[name] for name in units.ids], dtype=np.int64)
    odds = np.unique(log_odds(probabilities))
    middles = (odds[1:] + odds[:-1]) / 2 if len(odds) > 1 else odds
    candidates = np.unique(np.quantile(middles, np.linspace(0, 1, min(MAX_CANDIDATES, len(middles)))))
    named = (
        data.task.rules.unit_answers(units.mean(shift_threshold(probabilities, threshold)), data.task)["y_pred"]
        for threshold in candidates
    )
    positive = np.stack([(answers == data.task.classes[1]).to_numpy() for answers in named]).astype(np.float64)
    first = indices[np.unique(units.of_recording, return_index=True)[1]]
    found = []
    for drawn in draws:
        often = np.bincount(drawn, minlength=len(data.rows))[first].astype(np.float64)
        of_class = np.stack([often * (truth == code) for code in range(2)])
        called = positive @ of_class.T
        scores = macro_f1(np.stack([of_class.sum(axis=1) - called, called], axis=2), np.ones(2, dtype=np.bool_))
        equal = np.flatnonzero(scores >= scores.max() - 1e-12)
        found.append(float(candidates[equal[len(equal) // 2]]))
    return found
