"""Scoring of answers into a result: numbers with intervals, floor, verdict, groups and remarks."""

import pandas as pd

from cardiobench.core.errors import NotApplicable
from cardiobench.results.context import DEFAULT_CONTEXT, PATIENT_IS_RECORD, ResultContext
from cardiobench.results.provenance import stamp
from cardiobench.results.record import reason_given
from cardiobench.results.score_result import NumberFacts, ScoreResult
from cardiobench.results.verdict import Rank
from cardiobench.scoring.families import family_of
from cardiobench.scoring.verdict import judge
from cardiobench.stats.bootstrap import MIN_PATIENTS
from cardiobench.tasks.answers import JoinedAnswers

FEW_PATIENTS = 20
GENERATED = "generated recordings: the score says nothing about patients"


def score(answers: JoinedAnswers, references: pd.DataFrame, context: ResultContext = DEFAULT_CONTEXT) -> ScoreResult:
    """Score answers against their references by the rules of the kind of task.

    Args:
        answers: Answers joined with their references.
        references: Id, patient_id, split, y_true of all splits; the train rows give further floors.
        context: Origin of the answers, metrics and draws.

    Returns:
        The result. Numbers that cannot be computed are NaN, with a reason.

    Raises:
        NotApplicable: The model receives the target of the task as input.
    """
    task = answers.task
    if told := reason_given(context.model, [task.target], task.name):
        raise NotApplicable(told)
    scored = task.rules.scored(answers, references, context)
    overall, further, floors = scored.overall(), scored.further(), scored.floors()
    estimate = overall[scored.key]
    evidence = scored.evidence(estimate, floors["best_uninformed"])
    family = family_of(task.name, context.protocol, context.variant)
    higher = scored.metric.higher_is_better
    verdict = judge(evidence, scored.number(scored.key), task.unit, family, out_of_fold=answers.out_of_fold)
    groups, skipped, notes = scored.groups()
    collapsed, patients = scored.collapsed(), evidence.n_patients
    rough = _rough(patients, evidence.patients.effective)
    return ScoreResult(
        task=task.name,
        metric=scored.key,
        higher_is_better=higher,
        unit=task.unit,
        overall=overall,
        numbers={key: NumberFacts.of(scored.number(key)) for key in (*overall, *further)},
        further=further,
        floors=floors,
        verdict=verdict,
        collapsed=bool(collapsed),
        coverage=scored.coverage(),
        protocol=context.protocol,
        variant=context.variant,
        options=dict(context.options),
        dataset=dict(context.dataset or {"name": task.dataset}),
        model=dict(context.model or {"name": f"file: {answers.source}"}),
        groups=groups,
        skipped_groups=skipped,
        bounds=evidence.bounds,
        per_class=scored.per_class(),
        cost=context.cost,
        refits=scored.refits(overall),
        generated=context.generated,
        out_of_fold=answers.out_of_fold,
        seen_in_pretraining=context.seen_in_pretraining,
        warnings=(
            *([GENERATED] if context.generated else []),
            *([PATIENT_IS_RECORD] if context.dataset.get("patient_is_record") else []),
            *answers.warnings,
            *context.warnings,
            *scored.coverage_sentences(),
            *([f"collapsed: {collapsed}"] if collapsed else []),
            *([f"{verdict.word}: {verdict.sentence}"] if verdict.word.rank is not Rank.WINS else []),
            *([rough] if rough else []),
            *scored.sentences(estimate),
            *notes,
        ),
        stamp=stamp(seed=context.seed, resamples=context.resamples, **context.run),
    )


def _rough(patients: int, effective: float) -> str:
    """Return a warning that the interval is rough if it rests on few patients, or on few patients with most rows; else an empty text."""
    if patients < MIN_PATIENTS or effective >= FEW_PATIENTS:
        return ""
    told = patients >= FEW_PATIENTS or effective < patients / 2
    unequal = f", who by their shares of the rows count as {effective:.1f}" if told else ""
    return f"rests on {patients} patients{unequal}: the interval is rough below {FEW_PATIENTS}"
