"""Zero-shot: the recording is compared with sentences; nothing is learned."""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from cardiobench.data.prompts import prompts
from cardiobench.data.spec import Task
from cardiobench.embeddings.store import unit
from cardiobench.errors import NotApplicable
from cardiobench.models.base import Encoder, TextEncoder
from cardiobench.protocols.base import Output, TaskData
from cardiobench.protocols.numeric_prompts import RULES

PLACE = "<#>"


def no_text_tower(encoder: Encoder) -> str:
    """Why a model without text cannot do zero-shot."""
    reason = getattr(encoder, "no_text_reason", "") or "it has no text tower"
    return f"{encoder.name} cannot compare recordings with prompts: {reason}"


@dataclass(frozen=True)
class ZeroShot:
    """Prompt ensembles for classes, a ladder of numeric prompts for numbers.

    Class score = mean cosine of the pooled recording to the class's prompts; probabilities = softmax of the scores
    times the model's own logit scale. Numbers: `per_frame_median` and `rank_mean_median`, both always reported.

    Attributes:
        share: of the numeric prompts that count as likest.
    """

    share: float = 0.2

    name = "zero_shot"

    def variants(self, task: Task) -> tuple[str, ...]:
        """Two rules for numbers, one for classes."""
        return tuple(RULES) if task.kind == "regression" else ("",)

    def predict(self, data: TaskData, encoder: Encoder, variant: str) -> Output:
        """Predictions for the test lines from the dataset's prompts."""
        if not isinstance(encoder, TextEncoder):
            raise NotApplicable(no_text_tower(encoder))
        texts, version = prompts(data.task, data.prompts)
        test = data.lines("test")
        details = {"prompt_set": version, "prompt_file": data.prompts.name if data.prompts else "prompts.json"}
        if data.task.kind == "regression":
            values = self._numbers(data, encoder, texts["templates"], test, variant)
        else:
            values = self._classes(data, encoder, texts, test)
        return Output(test, values, details)

    def _classes(self, data: TaskData, encoder: TextEncoder, texts, test: np.ndarray) -> np.ndarray:
        pooled = unit(data.features[test])
        scores = np.stack(
            [(pooled @ _embed(encoder, texts[name]).T).mean(axis=1) for name in data.task.classes], axis=1
        )
        return softmax(encoder.logit_scale * scores, axis=1)

    def _numbers(self, data: TaskData, encoder: TextEncoder, templates, test: np.ndarray, rule: str) -> np.ndarray:
        ladder = data.task.ladder
        if ladder is None:
            raise NotApplicable(f"{data.task.name} has no ladder of numbers for its prompts")
        sentences = [template.replace(PLACE, text) for template in templates for text in ladder.texts()]
        numbers = np.tile(ladder.values(), len(templates))
        known = _embed(encoder, sentences)
        return np.array(
            [
                RULES[rule](unit(data.embeddings.parts(n).astype(np.float64)) @ known.T, numbers, self.share)
                for n in test
            ]
        )


def _embed(encoder: TextEncoder, texts) -> np.ndarray:
    return encoder.encode_text(list(texts)).cpu().numpy().astype(np.float64)
