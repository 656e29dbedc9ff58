"""Write the methods of a study from the settings of its results."""

from collections.abc import Sequence

from cardiobench.data import catalog
from cardiobench.extensions.manuscript.bibliography import (
    BENCHMARKS,
    SOFTWARE,
    dataset_key,
    model_key,
    software_key,
)
from cardiobench.extensions.manuscript.facts import facts, spec_of, words
from cardiobench.results import formatting
from cardiobench.results.score_result import ScoreResult


def methods(results: Sequence[ScoreResult]) -> dict[str, str]:
    """Return a mapping from title to paragraph, with references as `[@key]`."""
    known = facts(results)
    paragraphs = {
        "Data": _data(results),
        "Models": _models(results),
        "Protocols": _protocols(results),
        "Statistics": _statistics(results),
        "Software": _software(results),
    }
    if "warnings" in known:
        paragraphs["Remarks of the results"] = f"{known['warnings']}."
    return {title: text for title, text in paragraphs.items() if text}


def _data(results: Sequence[ScoreResult]) -> str:
    sentences = dict[str, None]()
    for result in results:
        spec = spec_of(result)
        name = result.task.partition("/")[0]
        title = spec.title if spec else name
        version = f", version {result.dataset['version']} of the benchmark" if result.dataset.get("version") else ""
        digest = f" (digest {result.dataset['digest']})" if result.dataset.get("digest") else ""
        made = (
            ", a synthetic twin" if result.dataset.get("twin") else ", generated recordings" if result.generated else ""
        )
        sentences[f"We used {title} [@{dataset_key(name)}]{version}{digest}{made}."] = None
    for task in dict.fromkeys(result.task for result in results):
        first = next(result for result in results if result.task == task)
        patients = f"{first.score.n} units of {first.score.n_patients} patients"
        level = "recordings, because patients are not known" if first.dataset.get("patient_is_record") else "patients"
        where = (
            "All splits were predicted out of fold"
            if first.out_of_fold
            else f"The test split is fixed and disjoint from training and validation by {level}"
        )
        coverage = f"{formatting.coverage(first)} units of the release were scored"
        sentences[f"The task {task} was scored on {patients}; {coverage}. {where}."] = None
    return " ".join(sentences)


def _models(results: Sequence[ScoreResult]) -> str:
    sentences = dict[str, None]()
    for result in results:
        model = result.model
        revision = f", revision {model['revision']}" if model.get("revision") else ""
        pooling = f", {model['pooling']} pooling" if model.get("pooling") else ""
        steps = f" Preprocessing: {words(model['preprocessing'])}." if model.get("preprocessing") else ""
        seen = {True: " It saw the dataset of a task in pretraining.", None: " Its pretraining data are not known."}
        known = "" if result.generated else seen.get(result.seen_in_pretraining, "")
        sentences[f"{model['name']} [@{model_key(str(model['name']))}]{revision}{pooling}.{steps}{known}"] = None
    return " ".join(sentences)


def _protocols(results: Sequence[ScoreResult]) -> str:
    """Return the options of each protocol that all of its results share; the others were chosen for each model."""
    sentences = []
    for protocol in dict.fromkeys(result.label for result in results):
        several = [result.options for result in results if result.label == protocol]
        shared = {name: value for name, value in several[0].items() if all(one.get(name) == value for one in several)}
        shown = {
            name: value for name, value in shared.items() if isinstance(value, (str, int, float, list)) and value != ""
        }
        chosen = list(dict.fromkeys(name for one in several for name in one if name not in shared))
        options = f": {words(shown)}" if shown else ""
        text = f"; {', '.join(chosen).replace('_', ' ')} differ between models or tasks" if chosen else ""
        sentences.append(f"Protocol {protocol}{options}{text}.")
    return " ".join(sentences)


def _statistics(results: Sequence[ScoreResult]) -> str:
    sentences = dict[str, None]()
    for result in results:
        sentences[f"{formatting.metric_name(result)} ranks models on {result.task}."] = None
    known = facts(results)
    sentences[f"Scores have {known['statistics']}."] = None
    for task in dict.fromkeys(result.task for result in results):
        first = next(result for result in results if result.task == task)
        reached = f", reached by {first.floor.reached_by}" if first.floor.reached_by else ""
        sentences[f"The floor of {task} is {formatting.floor(first)}{reached}."] = None
    sentences[
        "A score is above the floor if its interval is above the floor and the information test is significant; its p-value is "
        "that of the same answers permuted over patients."
    ] = None
    seeds = sorted({str(result.stamp[name]) for result in results for name in ("seed",) if name in result.stamp})
    resamples = sorted({str(result.stamp["resamples"]) for result in results if "resamples" in result.stamp})
    sentences[f"Seeds: {', '.join(seeds) or 'none'}; resamples: {', '.join(resamples) or 'none'}."] = None
    return " ".join(sentences)


def _software(results: Sequence[ScoreResult]) -> str:
    sentences = dict[str, None]()
    names = catalog.list_datasets()
    for result in results:
        name = result.task.partition("/")[0]
        benchmark = f" [@{BENCHMARKS[catalog.spec(name).modality][0]}]" if name in names else ""
        stamp = result.stamp
        packages = [f"{one} {stamp[one]} [@{software_key(one)}]" for one in SOFTWARE if stamp.get(one)]
        plain = [f"{one} {stamp[one]}" for one in ("numpy", "pandas", "python") if stamp.get(one)]
        commit = f" (commit {stamp['commit']})" if stamp.get("commit") else ""
        version = stamp.get("cardiobench", "of unknown version")
        sentences[
            f"Results were computed with cardiobench {version}{commit}{benchmark}, {', '.join([*packages, *plain])}."
        ] = None
    return " ".join(sentences)
