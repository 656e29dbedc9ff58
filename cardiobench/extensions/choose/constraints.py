"""Check candidates against the constraints of a choice."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cardiobench.core.errors import BadConfig
from cardiobench.data import catalog
from cardiobench.data.media.types import LEADS
from cardiobench.data.spec import VIEWS
from cardiobench.extensions.choose.candidates import Candidate
from cardiobench.metrics.load import load_metric
from cardiobench.results.cost import NO_NETWORK, Timing, short
from cardiobench.results.score_result import ScoreResult
from cardiobench.tasks.answers import TableAnswers
from cardiobench.tasks.groups import split_rows

FREE = re.compile(r"\b(MIT|Apache-2\.0|BSD(-[23]-Clause)?|CC BY 4\.0|CC0)\b")
"""Names in model cards of licences that permit commercial use."""
RESTRICTED = re.compile(r"\bNC\b|non-?commercial|not for commercial|conflict|none for the weights", re.IGNORECASE)
UNKNOWN_LICENCE = re.compile(r"in conflict|none for the weights|not stated", re.IGNORECASE)
DERIVED = {"III", "aVR", "aVL", "aVF"}
"""Leads that can be computed from I and II."""


@dataclass(frozen=True)
class Constraints:
    """Required model properties; None or empty means no constraint.

    Attributes:
        use: Use that the licence has to permit, "research" or "commercial".
        unseen: Whether to require that the pretraining data excludes the tasks' data.
        max_parameters: Largest number of parameters.
        max_flops: Largest number of floating-point operations per recording.
        leads: Available ECG leads.
        views: Available echo views.
        min_rate: Minimum rate of reading, preparing and encoding on a CPU, in recordings per second of CPU time of the process
            and its workers.
        worst_group: Required score of the worst validation subgroup, in the unit shown in reports; for errors, the
            maximum.
        text: Whether a text encoder is required.
        card: GPU on which rates count (`common_card`); empty if they count on a CPU.
    """

    use: str = ""
    unseen: bool = False
    max_parameters: float | None = None
    max_flops: float | None = None
    leads: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    min_rate: float | None = None
    worst_group: float | None = None
    text: bool = False
    card: str = ""

    @property
    def words(self) -> list[str]:
        """Return the constraints as phrases."""
        said = {
            f"a licence for {self.use} use": self.use,
            "data not seen in pretraining": self.unseen,
            f"at most {short(self.max_parameters)} parameters": self.max_parameters is not None,
            f"at most {short(self.max_flops)} FLOPs per recording": self.max_flops is not None,
            f"the leads {', '.join(self.leads)}": self.leads,
            f"the views {', '.join(self.views)}": self.views,
            f"{self.min_rate or 0:g} recordings per second {f'on {self.card}' if self.card else 'of CPU time'}": self.min_rate
            is not None,
            f"a worst subgroup of {self.worst_group or 0:g}": self.worst_group is not None,
            "a text tower": self.text,
        }
        return [phrase for phrase, given in said.items() if given]


ONLY_OF = {"leads": "ecg", "views": "echo"}
"""Constraint -> modality of the recordings to which it applies."""


def check_modality(constraints: Constraints, tasks: Sequence[str]) -> None:
    """Check that each constraint applies to a task.

    Raises:
        BadConfig: Leads were given for echo tasks only, or views for ECG tasks only.
    """
    found = {catalog.spec(catalog.task(name).dataset).modality for name in tasks}
    for name, modality in ONLY_OF.items():
        values = getattr(constraints, name)
        if values and modality not in found:
            fitting = [f"--{other}" for other, its in ONLY_OF.items() if its in found]
            raise BadConfig(
                f"--{name} {' '.join(values)} applies to {modality} recordings, and {', '.join(tasks)} uses "
                f"{' and '.join(sorted(found))} recordings. Leave it out, or give {' and '.join(fitting)}."
            )


def check_views(asked: Sequence[str], candidates: Sequence[Candidate]) -> None:
    """Check that the requested views are those of the datasets, or stated by a model.

    Raises:
        BadConfig: A view is neither.
    """
    known = dict.fromkeys((*VIEWS, *(view for one in candidates for view in stated_views(one))))
    if unknown := [view for view in asked if view not in known]:
        raise BadConfig(f"--views {' '.join(unknown)}: no such view. The views are {', '.join(known)}.")


def refusals(candidate: Candidate, constraints: Constraints) -> list[str]:
    """Return the reasons why a candidate violates the constraints; empty if it satisfies all."""
    return [reason for check in CHECKS for reason in check(candidate, constraints)]


def _use(candidate: Candidate, asked: Constraints) -> Iterator[str]:
    if not asked.use:
        return
    licence = candidate.card.licence if candidate.card else ""
    if not licence or UNKNOWN_LICENCE.search(licence):
        yield f"licence: {licence or 'not known, it has no card here'}"
    elif asked.use == "commercial" and (RESTRICTED.search(licence) or not FREE.search(licence)):
        yield f"licence: {licence} is not known to allow commercial use"


def _unseen(candidate: Candidate, asked: Constraints) -> Iterator[str]:
    if asked.unseen:
        for task, entry in candidate.entries.items():
            if entry.result.seen_in_pretraining is not False:
                known = (
                    "was in its pretraining data"
                    if entry.result.seen_in_pretraining
                    else "may have been in its pretraining data"
                )
                yield f"pretraining: the data of {task} {known}"


def _size(candidate: Candidate, asked: Constraints) -> Iterator[str]:
    cost = candidate.cost
    if cost is not None and cost.reason == NO_NETWORK:
        return
    limits = {
        "parameters": (asked.max_parameters, cost.parameters if cost else None),
        "FLOPs": (asked.max_flops, cost.flops if cost else None),
    }
    for name, (limit, value) in limits.items():
        if limit is None:
            continue
        if value is None or np.isnan(value):
            yield f"{name}: not known, {cost.reason if cost else 'its result states no cost'}"
        elif value > limit:
            yield f"{name}: {short(value)}, at most {short(limit)} asked for"


def common_card(candidates: Sequence[Candidate]) -> str:
    """Return the GPU on which all candidates were timed; empty if all have CPU times, or there is no such card.

    Times on different cards are not compared.
    """
    timings = [one.cost.timings if one.cost else () for one in candidates]
    if all(any(_is_on_cpu(one) and not np.isnan(one.cpu_seconds) for one in its) for its in timings):
        return ""
    cards = [{one.device for one in its if not _is_on_cpu(one)} for its in timings]
    return min(set.intersection(*cards), default="") if cards else ""


def _is_on_cpu(timing: Timing) -> bool:
    return timing.device.startswith("cpu")


def _rate(candidate: Candidate, asked: Constraints) -> Iterator[str]:
    if asked.min_rate is None:
        return
    timings = candidate.cost.timings if candidate.cost else ()
    if asked.card:
        slow = max((one.seconds + one.decoding for one in timings if one.device == asked.card), default=np.inf)
        if 1 / max(slow, 1e-9) < asked.min_rate:
            yield f"rate: {1 / max(slow, 1e-9):.3g} recordings per second on {asked.card}, {asked.min_rate:g} asked for"
        return
    on_cpu = [one for one in timings if _is_on_cpu(one)]
    if not on_cpu:
        where = ", ".join(one.device for one in timings) or "nowhere"
        yield (
            f"rate: measured on {where}, not on a CPU, and the candidates have no card in common: encode with --device cpu "
            "into another --cache-dir"
        )
        return
    if not (known := [one for one in on_cpu if not np.isnan(one.cpu_seconds)]):
        yield f"rate: its embeddings state no CPU time on {on_cpu[0].device}: encode again into another --cache-dir"
        return
    slowest = max(known, key=lambda one: one.cpu_seconds)
    rate = 1 / max(slowest.cpu_seconds, 1e-9)
    if rate < asked.min_rate:
        yield f"rate: {rate:.3g} recordings per second of CPU time on {slowest.device}, {asked.min_rate:g} asked for"


def needed_leads(result: ScoreResult) -> tuple[str, ...]:
    """Return the leads stated in the model's facts or preprocessing; by default all twelve."""
    stated = result.model.get("leads", (result.model.get("preprocessing") or {}).get("leads", LEADS))
    names = stated.split() if isinstance(stated, str) else list(LEADS if stated is None else stated)
    every: list[str] = []
    for name in names:
        first, dash, last = str(name).partition("-")
        every += LEADS[LEADS.index(first) : LEADS.index(last) + 1] if dash and {first, last} <= set(LEADS) else [name]
    return tuple(every)


def _leads(candidate: Candidate, asked: Constraints) -> Iterator[str]:
    if not asked.leads:
        return
    there = set(asked.leads) | (DERIVED if {"I", "II"} <= set(asked.leads) else set())
    result = next(iter(candidate.entries.values())).result
    if absent := [lead for lead in needed_leads(result) if lead not in there]:
        yield f"leads: it also takes {', '.join(absent)}"


def stated_views(candidate: Candidate) -> tuple[str, ...]:
    """Return the views in the model's preprocessing; empty if it states none."""
    stated = next(iter(candidate.entries.values())).result.model.get("preprocessing", {}).get("views") or ()
    return tuple(map(str, stated))


def _views(candidate: Candidate, asked: Constraints) -> Iterator[str]:
    if asked.views and (absent := [view for view in stated_views(candidate) if view not in asked.views]):
        yield f"views: it also takes {', '.join(absent)}"


def _text(candidate: Candidate, asked: Constraints) -> Iterator[str]:
    has = bool(candidate.card and candidate.card.text) or bool(candidate.cost and candidate.cost.text_parameters)
    if asked.text and not has:
        yield "text: it has no text tower"


def worst_group(answers: TableAnswers) -> tuple[str, float] | None:
    """Return the worst patient subgroup and its score, or None if no group can be scored."""
    task = answers.task
    metric = load_metric(task.metrics[0])
    sample = answers.sample()
    classes = task.classes if task.rules.answer == "class" else ()
    scores: dict[str, float] = {}
    for group in task.groups:
        for label, rows in split_rows(group, answers.frame, classes).rows.items():
            scores[f"{group.name} {label}"] = float(metric.value(sample.take(rows))[metric.primary_key])
    known = {name: score for name, score in scores.items() if not np.isnan(score)}
    pick: Callable[..., str] = min if metric.higher_is_better else max
    return (worst := pick(known, key=lambda name: known[name]), known[worst]) if known else None


def _worst_group(candidate: Candidate, asked: Constraints) -> Iterator[str]:
    if asked.worst_group is None:
        return
    for task, answers in candidate.validation.items():
        number = load_metric(answers.task.metrics[0]).primary
        if number.factor == 100 and 0 < asked.worst_group <= 1:
            raise BadConfig(
                f"--worst-group {asked.worst_group:g}: {task} is scored in percent. Give a percentage, such as {100 * asked.worst_group:g}."
            )
        low, high = (number.factor * end for end in number.range)
        if not low <= asked.worst_group <= high:
            allowed = f"of at least {low:g}" if high == float("inf") else f"from {low:g} to {high:g}"
            raise BadConfig(f"--worst-group {asked.worst_group:g}: expected a number {allowed}, in the unit of {task}.")
        found = worst_group(answers)
        if found is None:
            yield f"subgroups: no subgroup of {task} has 10 validation patients (5 of each class)"
            continue
        name, score = found
        if (
            number.factor * score < asked.worst_group
            if number.higher_is_better
            else number.factor * score > asked.worst_group
        ):
            yield f"subgroups: {name} scores {number.text(score)} on the validation patients of {task}, {asked.worst_group:g} asked for"


CHECKS = (_use, _unseen, _size, _rate, _leads, _views, _text, _worst_group)
