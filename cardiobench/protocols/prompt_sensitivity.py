"""Prompt sensitivity: how much a zero-shot score depends on how the question is put."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cardiobench.core.errors import NotApplicable
from cardiobench.data.prompts import prompt_digest, prompts
from cardiobench.data.spec import Task
from cardiobench.models.base import Encoder, TextEncoder
from cardiobench.protocols.analysis import Analysis, AnalysisOutput, AnalysisProtocol
from cardiobench.protocols.base import ProtocolOutput
from cardiobench.protocols.numeric_prompts import RULES
from cardiobench.protocols.ranking import Ranking
from cardiobench.protocols.zero_shot import ZeroShot, no_text_tower
from cardiobench.results.analysis_result import point_estimate

# Spellings that say the same; the released prompts of arXiv:2510.00520 are capitals with a blank before the full stop.
SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "lower case": str.lower,
    "CAPITALS": str.upper,
    "no full stop": lambda text: text.rstrip(" ."),
    "blank before the full stop": lambda text: text.rstrip(" .") + " .",
}
SHARES = (0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True)
class PromptSensitivity(AnalysisProtocol):
    """The zero-shot score under the prompt set, each of its sentences alone, and other spellings of it.

    Numbers: also with other shares of the likest prompts, for both rules. Each with its interval over patients, and
    the spread of them all.
    """

    name = "prompt_sensitivity"

    def analyze(self, study: Analysis, encoder: Encoder) -> AnalysisOutput:
        """A score for every way to ask."""
        (task,) = study.tasks
        if not isinstance(encoder, TextEncoder):
            raise NotApplicable(no_text_tower(encoder))
        data = study.data(task)
        texts, version = prompts(task, data.prompts)
        ranking, test = Ranking(task, study.truth(task), study.resamples, study.seed), data.indices("test")
        rows, values = [], {}
        for rule in RULES if task.kind == "regression" else ("",):
            asked = []
            for kind, wording, chosen, share in ways(task, texts):
                asker = ZeroShot(share)
                if task.kind == "regression":
                    answers = asker.numbers(data, encoder, chosen["templates"], test, rule)
                else:
                    answers = asker.classes(data, encoder, chosen, test)
                found = ranking.score(data, ProtocolOutput(test, answers, {})).estimate
                asked.append(found.value)
                row = {"rule": rule, "kind": kind, "wording": wording, "share": share}
                rows.append({**row, "score": found.value, "low": found.low, "high": found.high})
                if kind == "prompt set":
                    values[f"{rule} {ranking.key}".strip()] = found
            spread = {"lowest": np.min(asked), "highest": np.max(asked), "deviation": np.std(asked)}
            values |= {f"{rule} {name}".strip(): point_estimate(value, n=len(asked)) for name, value in spread.items()}
        table = pd.DataFrame(rows).assign(floor=ranking.floor(), metric=ranking.key, unit=task.unit)
        options = {"prompt_set": version, "prompts": prompt_digest(task, data.prompts)}
        return AnalysisOutput(values, {"wordings": table}, options)


def ways(task: Task, texts: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str, dict[str, list[str]], float]]:
    """(kind, wording, prompts, share of the likest) of every way to ask; the set as it stands first."""
    share = ZeroShot().share
    keys = ("templates",) if task.kind == "regression" else task.classes
    whole = {key: list(texts[key]) for key in keys}
    yield "prompt set", "all sentences", whole, share
    for place in range(max(len(found) for found in whole.values())):
        alone = {key: [found[place % len(found)]] for key, found in whole.items()}
        yield "one sentence", alone[keys[-1]][0], alone, share
    for name, spell in SPELLINGS.items():
        yield "spelling", name, {key: [spell(text) for text in found] for key, found in whole.items()}, share
    if task.kind == "regression":
        for other in SHARES:
            if other != share:
                yield "share of the likest", f"{other:g}", whole, other
