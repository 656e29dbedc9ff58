"""Measure the sensitivity of zero-shot scores to prompt wording."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from cardiobench.data.prompts import prompt_digest
from cardiobench.data.prompts import prompts as task_prompts
from cardiobench.data.spec import Task
from cardiobench.models.base import Encoder
from cardiobench.protocols.analysis import Analysis, AnalysisOutput, AnalysisProtocol
from cardiobench.protocols.numeric_prompts import RULES
from cardiobench.protocols.task_scorer import TaskScorer
from cardiobench.protocols.zero_shot import ZeroShot, prompt_calls, text_encoder
from cardiobench.results.analysis_result import point_estimate

COMPONENT = "protocol prompt_sensitivity"
VERSION = 1

# Spelling variants; the released prompts of arXiv:2510.00520 use capitals and a space before the full stop.
SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "lower case": str.lower,
    "CAPITALS": str.upper,
    "no full stop": lambda text: text.rstrip(" ."),
    "blank before the full stop": lambda text: text.rstrip(" .") + " .",
}
TOP_FRACTIONS = (0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True)
class PromptSensitivity(AnalysisProtocol):
    """Zero-shot scores for the prompt set, each sentence alone, and spelling variants.

    For numeric tasks, also vary the fraction of most similar prompts under both rules. Every score has an interval over
    patients, and the spread over wordings is reported.
    """

    name = "prompt_sensitivity"
    from_embeddings = True

    def texts(self, tasks: Sequence[Task], prompts: Path | None) -> list[list[str]]:
        """Return the texts of all wordings."""
        (task,) = tasks
        every = wordings(task, task_prompts(task, prompts)[0])
        return [call for wording in every for call in prompt_calls(task, wording.prompts)]

    def analyze(self, analysis: Analysis, encoder: Encoder) -> AnalysisOutput:
        """Return the score of every wording."""
        (task,) = analysis.tasks
        encoder = text_encoder(encoder)
        data = analysis.data(task)
        texts, version = task_prompts(task, data.prompts)
        scorer = TaskScorer(task, analysis.references(task), analysis.resamples, analysis.seed)
        test = data.indices("test")
        recordings = scorer.of(data, test)
        rows, values = [], {}
        for rule in RULES if task.rules.answer == "number" else ("",):
            scores = []
            for wording in wordings(task, texts):
                zero_shot = ZeroShot(wording.share)
                if task.rules.answer == "number":
                    predicted = zero_shot.predict_numbers(data, encoder, wording.prompts["templates"], test, rule)
                else:
                    predicted = zero_shot.predict_classes(data, encoder, wording.prompts, test)
                score = recordings.estimate(predicted)
                scores.append(score.value)
                row = {"rule": rule, "kind": wording.kind, "wording": wording.name, "share": wording.share}
                rows.append({**row, "score": score.value, "low": score.low, "high": score.high})
                if wording.kind == PROMPT_SET:
                    values[f"{rule} {scorer.key}".strip()] = score
            spread = {"lowest": np.min(scores), "highest": np.max(scores), "deviation": np.std(scores)}
            values |= {
                f"{rule} {name}".strip(): point_estimate(float(value), n=len(scores)) for name, value in spread.items()
            }
        table = pd.DataFrame(rows).assign(floor=scorer.floor(), metric=scorer.key, unit=scorer.unit)
        options = {"prompt_set": version, "prompts": prompt_digest(task, data.prompts)}
        return AnalysisOutput(values, {"wordings": table}, options)


@dataclass(frozen=True)
class Wording:
    """Variant of a task's prompts.

    Attributes:
        kind: Type of change, such as "spelling".
        name: Name of the wording within its kind.
        prompts: Mapping from class, or "templates", to sentences.
        share: Fraction of the numeric prompts used.
    """

    kind: str
    name: str
    prompts: Mapping[str, Sequence[str]]
    share: float


PROMPT_SET = "prompt set"


def wordings(task: Task, texts: Mapping[str, Sequence[str]]) -> Iterator[Wording]:
    """Yield all wordings of a task's prompts, starting with the unchanged set."""
    share = ZeroShot().share
    keys = ("templates",) if task.rules.answer == "number" else task.classes
    whole = {key: list(texts[key]) for key in keys}
    yield Wording(PROMPT_SET, "all sentences", whole, share)
    for index in range(max(map(len, whole.values()))):
        single = {key: [sentences[index % len(sentences)]] for key, sentences in whole.items()}
        yield Wording("one sentence", single[keys[-1]][0], single, share)
    for name, spell in SPELLINGS.items():
        yield Wording("spelling", name, {key: list(map(spell, texts)) for key, texts in whole.items()}, share)
    if task.rules.answer == "number":
        for other in TOP_FRACTIONS:
            if other != share:
                yield Wording("share of the likest", f"{other:g}", whole, other)
