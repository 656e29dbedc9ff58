"""Rebuild a submitted result from its predictions, the references and the registries."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from cardiobench.core.conditions import installed_condition, split_parts
from cardiobench.core.config import RESAMPLES, RunConfig
from cardiobench.core.errors import BadData, UnknownName
from cardiobench.core.io import to_plain
from cardiobench.data import catalog
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.open import open_dataset
from cardiobench.data.references_file import References, reference_facts
from cardiobench.data.spec import Task
from cardiobench.hub.outgoing import clean_text
from cardiobench.metrics.load import load_metrics
from cardiobench.models.cards import ModelCard, find_card
from cardiobench.protocols import protocol
from cardiobench.protocols.base import BaseProtocol, PredictionProtocol
from cardiobench.protocols.ensemble import EnsembleProtocol
from cardiobench.protocols.profile import DEFAULT, RunProfile, find_profile
from cardiobench.results.context import ResultContext
from cardiobench.results.refits import NO_TRAINING, TRAINING_PATIENTS, TRAINING_SEEDS
from cardiobench.results.score_result import Judgement, ScoreResult
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.refits import ranking_scores
from cardiobench.scoring.score import score
from cardiobench.scoring.suites import load_suite
from cardiobench.scoring.verdict import refits_of
from cardiobench.stats.variability import BOTH, SEEDS
from cardiobench.tasks.answers import RefitAnswers
from cardiobench.tasks.task import metrics_of

EXTERNAL = "predictions"
"""Protocol of externally scored predictions: it has no options and covers the test units."""
SPREADS = {BOTH: "refit_scores", SEEDS: "seed_scores"}
"""Mapping from source of variation (beside test patients) to the context field with its scores."""


@dataclass(frozen=True)
class Rules:
    """Facts about a result that suite, protocol and registry determine.

    Attributes:
        claimed: Submitted result; only task, protocol, variant, suite, profile and model name are used, and the
            declared pretraining data if the model has no card.
    """

    claimed: ScoreResult

    @cached_property
    def profile(self) -> RunProfile:
        """Profile of the run, which determines definitions, options and seed."""
        return find_profile(self.claimed.profile or DEFAULT)

    @cached_property
    def task(self) -> Task:
        """Task from the catalogue, as defined by the profile."""
        return self.profile.task(catalog.task(self.claimed.task))

    @cached_property
    def seed(self) -> int:
        """Seed of a run without `--seed`."""
        return self.profile.apply(RunConfig()).seed

    @cached_property
    def protocol(self) -> BaseProtocol | None:
        """Protocol with the options of the suite; None for externally scored predictions.

        Raises:
            BadData: The suite, the protocol or the variant is unknown.
            NotApplicable: The protocol does not apply to the task.
        """
        name, variant = self.claimed.protocol, self.claimed.variant
        suite = self.claimed.stamp.get("suite")
        try:
            options = load_suite(str(suite)).options if suite else {}
            run = RunConfig(profile=self.claimed.profile or DEFAULT, seed=self.seed, options=dict(options))
            made = None if name == EXTERNAL else protocol(name, run)
        except UnknownName as error:
            raise BadData(f"{error} Its options and units are not known here") from error
        if isinstance(made, PredictionProtocol):
            made.check(self.task)
            if not has_variant(made, self.task, variant):
                raise BadData(f"{name} has no variant '{variant}' for {self.task.name}")
        elif made is not None and not self.claimed.options:
            raise BadData(
                f"results of {name} must state their options, but this one has none. Run the evaluation again"
            )
        return made

    @cached_property
    def options(self) -> Mapping[str, Any]:
        """Options that the result must state, except those that only select variants."""
        made = self.protocol
        stated = {} if made is None else to_plain(made.params_for(self.task))
        return {name: value for name, value in stated.items() if made is None or name not in made.selecting_options}

    @property
    def out_of_fold(self) -> bool:
        """Return whether the protocol predicts units of all splits."""
        return self.protocol is not None and self.protocol.out_of_fold

    @property
    def refitted(self) -> bool:
        """Return whether the interval includes refits or seeds, which predictions do not show."""
        seeds = getattr(self.protocol, "seeds_in_interval", False) and self.options.get("seeds", 0) > 1
        return bool(seeds or self.options.get("refits", 0) > 1)

    @property
    def refits_made(self) -> int | None:
        """Return the number of refits or seeds that the options give; None if they give none."""
        known = [self.options[name] for name in ("refits", "comparison_refits", "seeds") if name in self.options]
        return max(known, default=None)

    def possible(self, refits: RefitAnswers | None) -> RefitAnswers | None:
        """Return answers of refits, with the seed of the options, if the protocol makes such refits; else None.

        Predictions of a protocol without training have refits of nothing, if the result states any.
        """
        made, variant = self.protocol, _without_conditions(self.task, self.claimed.variant)
        if isinstance(made, PredictionProtocol) and not made.reads_training(variant):
            return RefitAnswers(NO_TRAINING) if self.claimed.refits is not None else None
        varies = TRAINING_SEEDS if isinstance(made, EnsembleProtocol) else TRAINING_PATIENTS
        if made is None or refits is None or refits.varies != varies:
            return None
        return replace(refits, seed=self.options.get("seed", self.seed))

    @cached_property
    def card(self) -> ModelCard | None:
        """Card of the model, or None if it is not registered."""
        return find_card(str(self.claimed.model["name"]))

    @property
    def model(self) -> Mapping[str, Any]:
        """Facts about the model, with the input facts that its card declares."""
        given = {*self.claimed.model.get("given", ()), *(self.card.given if self.card else ())}
        return {**self.claimed.model, **({"given": sorted(given)} if given else {})}

    @property
    def seen_in_pretraining(self) -> bool | None:
        """Whether the model saw the dataset, according to its card, or, without a card, to the submitter."""
        return self.card.saw(self.task.dataset) if self.card else self.claimed.seen_in_pretraining

    def references(self, dataset: OpenDataset) -> pd.DataFrame:
        """Return references with the units that the protocol predicts as split `test`."""
        references = dataset.references(self.task)
        if not self.out_of_fold or not isinstance(self.protocol, PredictionProtocol):
            return references
        rows = dataset.task_rows(self.task).reset_index(drop=True)
        units = self.protocol.select_rows(rows, self.task, self.claimed.variant)[self.task.unit_column]
        return references[references["id"].isin(set(units.astype(str)))].assign(split="test")

    def facts(self) -> dict[str, Any]:
        """Return the part of the JSON that does not depend on data or predictions."""
        ranking, spec = load_metrics(metrics_of(self.task))[0], catalog.spec(self.task.dataset)
        limit = {} if self.claimed.protocol == EXTERNAL else {"limit": None}
        return {
            "metric": ranking.primary_key,
            "higher_is_better": ranking.higher_is_better,
            "unit": self.task.unit,
            "options": self.options,
            "out_of_fold": self.out_of_fold,
            "dataset": {"name": spec.name, "version": spec.version, "twin": False} | limit,
            "generated": spec.generated,
            "seen_in_pretraining": self.seen_in_pretraining,
            "stamp": {"seed": self.seed, "resamples": RESAMPLES},
        }


def has_variant(made: PredictionProtocol, task: Task, variant: str) -> bool:
    """Return whether a run produces results of the variant."""
    return _without_conditions(task, variant) in made.result_variants(task)


def _without_conditions(task: Task, variant: str) -> str:
    """Return a variant without the conditions at its end."""
    found = installed_condition(split_parts(variant)[-1]) if variant else None
    if found is None or not found.module.applies(task, found.value):
        return variant
    return _without_conditions(task, variant.removesuffix(found.label).removesuffix("."))


class Rebuilt(NamedTuple):
    """Rebuilt result.

    Attributes:
        result: Rebuilt result; a p-value of refits on embeddings is copied from the claim.
        clean: Function that removes ids of the dataset from texts.
        fixed: Verdict of the test with fixed answers; differs from `result` only if the claim is of refits.
    """

    result: ScoreResult
    clean: Callable[[str], str]
    fixed: Judgement


def rebuild(
    rules: Rules, answers: pd.DataFrame, refits: RefitAnswers | None = None, data_dir: Path | None = None
) -> Rebuilt:
    """Score the predictions of a submission under the local rules.

    From the submission, only the facts in `Rules` are used, and numbers that predictions cannot show: the p-value of
    refits on embeddings, and the standard error of an interval that covers refits, or seeds without their answers. The
    refits of an interval have the penalty and thresholds of the model itself, and their answers are not sent.

    Args:
        rules: Rules for the submitted result.
        answers: Predictions with id and `y_pred`, `p_<class>` or both.
        refits: Answers of the refits; None if there are none.
        data_dir: Folder with raw or prepared data.

    Raises:
        BadData: The suite, the protocol or its variant is unknown.
        BadPredictions: The units differ from those of the protocol, or values are invalid.
        MissingData: The data is not available.
    """
    task, claimed = rules.task, rules.claimed
    dataset = open_dataset(task.dataset, data_dir, need_media=False, published=True)
    if claimed.dataset.get("overlays") == "masked":
        dataset = dataset.with_masked_overlays()
    references = rules.references(dataset)
    joined = Predictions.join(references, answers, task, source=claimed.label, allow_missing=True)
    expected = dataset.expected(task, references)
    if rules.out_of_fold:
        expected = len(references) + dataset.absent_units(task) + dataset.unread_units(task)
    joined = replace(joined, expected=expected, out_of_fold=rules.out_of_fold, refits=rules.possible(refits))
    if isinstance(rules.protocol, PredictionProtocol):
        joined = joined.with_floors(rules.protocol.floors(dataset.task_rows(task), task))
    masked = {"overlays": "masked"} if dataset.masked else {}
    if claimed.given_embeddings and "references_digest" in claimed.dataset:
        dataset = replace(dataset.without_recordings(), labels_only=True)
    facts = {**dataset.facts, **masked, "limit": None, **dataset.coverage(), **reference_facts(dataset, task)}
    if claimed.protocol == EXTERNAL:
        by_file = "references_digest" in claimed.dataset
        facts = References.of(dataset, task).facts if by_file else dataset.facts
        joined = joined.with_doubts()
    context = ResultContext(
        dataset=facts,
        generated=dataset.generated,
        model=rules.model,
        seen_in_pretraining=rules.seen_in_pretraining,
        protocol=claimed.protocol,
        variant=claimed.variant,
        options=rules.options,
        profile=claimed.profile,
        seed=rules.seed,
    )
    seeds = (
        ranking_scores(joined) if rules.refitted and joined.refits and joined.refits.varies == TRAINING_SEEDS else ()
    )
    context = replace(context, seed_scores=seeds)
    result = score(joined, references, context)
    if rules.refitted and not seeds and claimed.score.covers in SPREADS:
        drawn: dict[str, Any] = {SPREADS[claimed.score.covers]: _spread_scores(claimed, result)}
        result = score(joined, references, replace(context, **drawn))
    fixed = result.verdict
    if rules.out_of_fold and (information := refits_of(claimed.verdict, claimed.score.n_patients)):
        result = score(replace(joined, information=information), references, context)
    ids = frozenset(name for name in {*references["id"], *references["patient_id"].astype(str)} if not name.isdigit())
    return Rebuilt(result, lambda text: clean_text(text, ids), fixed)


def _spread_scores(claimed: ScoreResult, test_only: ScoreResult) -> tuple[float, float]:
    """Return two scores whose spread matches the variance of refits or seeds implied by the standard error."""
    variance = claimed.score.se**2 - test_only.score.se**2
    half = math.sqrt(variance / 2) if variance > 0 else 0.0
    return -half, half
