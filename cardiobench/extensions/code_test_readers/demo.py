"""Demonstrate a comparison on CODE-test: mean F1, differences from the network, and F1 per diagnosis."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cardiobench.extensions.code_test_readers.readings import DOCTORS, JUDGES, NAMES, NETWORK, READERS, predictions
from cardiobench.metrics.load import load_metric
from cardiobench.results.formatting import p_value
from cardiobench.results.printing import PrintedTable
from cardiobench.results.score_result import Estimate
from cardiobench.scoring.compare import Comparison, compare
from cardiobench.scoring.predictions import Predictions
from cardiobench.scoring.ranks import correct_together
from cardiobench.stats.clusters import Clusters
from cardiobench.stats.estimates import Sampler, estimate_metric

METRIC = "multilabel_f1"
MADE_BY = "created the gold standard; not compared"


def demo() -> Iterator[PrintedTable | str]:
    """Yield tables and sentences that compare the network with each group of doctors."""
    answered = {reader: predictions(reader) for reader in READERS}
    samplers = {reader: _sampler(one) for reader, one in answered.items()}
    metric, some = load_metric(METRIC), samplers[NETWORK]
    floor, _ = metric.floor(some.sample.y_true, some.classes)[METRIC] if metric.floor else (np.nan, "")
    yield (
        f"{len(some.sample)} real ECGs of as many patients (CODE-test, Ribeiro et al. 2020), six diagnoses, read by a published network "
        "and by doctors. "
        f"F1 combines recall and precision; 1 is perfect, and {floor:.2f} is reached without the ECG."
    )
    yield PrintedTable(
        "mean over the six diagnoses",
        ("reader", "F1", "95 % CI over patients", "precision", "recall", "specificity", ""),
        [_row(reader, estimate_metric(metric, sampler)) for reader, sampler in samplers.items()],
    )
    auroc = estimate_metric(load_metric("auroc_macro"), some, ["auroc_macro"])["auroc_macro"]
    alone = f"Only the network gives probabilities: mean AUROC {auroc.value:.3f} [{_ends(auroc)}]."
    yield "\n".join((*map(sentence, comparisons(answered)), alone))
    yield PrintedTable(
        "F1 of each diagnosis [95 % CI over patients]",
        ("diagnosis", "patients", *(NAMES[reader] for reader in (NETWORK, *DOCTORS))),
        [_of_diagnosis(code, name, samplers) for code, name in enumerate(answered[NETWORK].task.classes)],
    )


def comparisons(answered: dict[str, Predictions]) -> list[Comparison]:
    """Compare the network with each group of doctors on the same patients, with Holm-corrected p-values."""
    network = replace(answered[NETWORK], source=NAMES[NETWORK])
    found = [compare(network, replace(answered[reader], source=NAMES[reader]), METRIC) for reader in DOCTORS]
    return correct_together(found)


def sentence(comparison: Comparison) -> str:
    """State in one sentence whether the answers of the network and of a group of doctors differ."""
    side = "higher" if comparison.difference > 0 else "lower"
    low, high = sorted(np.sign(comparison.difference or 1) * end for end in (comparison.low, comparison.high))
    outcome = {"answers differ": "these two sets of answers differ"}.get(
        comparison.outcome, "the difference is not significant"
    )
    p = f"p = {p_value(comparison.p_adjusted)}".replace("= <", "<")
    return (
        f"The network's mean F1 is {comparison.a:.3f}, {abs(comparison.difference):.3f} {side} than the {comparison.names[1]}' "
        f"[{low:.3f}, {high:.3f}], {p} for {len(DOCTORS)} comparisons: {outcome}."
    )


def _sampler(answers: Predictions) -> Sampler:
    sample = answers.sample()
    return Sampler(sample, Clusters.of(answers.patients), sample.present_classes(len(answers.task.classes)))


def _row(reader: str, numbers: dict[str, Estimate]) -> list[str]:
    values = [f"{numbers[f'multilabel_{name}'].value:.3f}" for name in ("precision", "recall", "specificity")]
    f1 = numbers[METRIC]
    return [NAMES[reader], f"{f1.value:.3f}", _ends(f1), *values, MADE_BY if reader in JUDGES else ""]


def _of_diagnosis(code: int, name: str, samplers: dict[str, Sampler]) -> list[str]:
    chosen = np.arange(samplers[NETWORK].classes) == code
    only = {reader: samplers[reader].take_classes(chosen) for reader in (NETWORK, *DOCTORS)}
    scores = [estimate_metric(load_metric(METRIC), one, [METRIC])[METRIC] for one in only.values()]
    return [name, str(int(only[NETWORK].sample.y_true.sum())), *(f"{one.value:.3f} [{_ends(one)}]" for one in scores)]


def _ends(estimate: Estimate) -> str:
    return f"{estimate.low:.3f}, {estimate.high:.3f}"
