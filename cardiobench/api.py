"""Python API: the functions behind the commands."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, replace
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, get_type_hints

from cardiobench.core.config import RunConfig, make_config
from cardiobench.core.errors import BadConfig, MissingData, NoResult
from cardiobench.core.python_messages import as_arguments, user_errors
from cardiobench.core.registry import check_names, check_text, unknown_name
from cardiobench.core.run_options import RunOptions

if TYPE_CHECKING:
    import datasets
    import pandas as pd

    from cardiobench.data.references_file import References
    from cardiobench.models.base import Encoder
    from cardiobench.report.evaluation import EvaluationResults
    from cardiobench.results.score_result import ScoreResult
    from cardiobench.scoring.compare import Comparison
    from cardiobench.scoring.predictions import Predictions


@user_errors
def evaluate(
    model: "str | Encoder | Sequence[str | Encoder]" = (),
    tasks: str | Sequence[str] = (),
    protocols: str | Sequence[str] = (),
    *,
    embeddings: "str | Path | pd.DataFrame | None" = None,
    **options: Unpack[RunOptions],
) -> "EvaluationResults":
    """Evaluate models, or existing embeddings, on tasks, like `python -m cardiobench.eval`.

    Args:
        model: Hub id, local folder, `package.module:Class`, `path/to/file.py:Class`, an encoder object, or several.
        tasks: Task or dataset names; empty = every task of the model's modality with real data on this machine,
            or prepared in ./cardiobench; generated phantoms if there are none.
        protocols: Names; empty = the default ones.
        embeddings: Parquet, NPZ or CSV file, or a data frame, with an `id` and a vector for every recording of the
            tasks, instead of or in addition to models; `model_name` names their model.
        options: Other fields of `RunConfig`, such as `data_dir`, `output_dir`, `allow_missing`, `limit`.

    Returns:
        The results, new and cached: a sequence that prints as a table, with `to_pandas()`, `compare()` and `report()`.
        They are also saved below `output_dir`.

    Warns:
        UserWarning: Some of the models or tasks have no result; the message says why.

    Raises:
        NoResult: The run has no result at all.
        CardioBenchError: The request is wrong.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = evaluate("cardiobench/constant", "phantom_ecg/af", "knn", output_dir=folder, cache_dir=folder)
    >>> results.to_pandas()[["task", "model", "protocol", "metric", "verdict"]].values.tolist()
    [['phantom_ecg/af', 'cardiobench/constant', 'knn', 'f1_macro', 'no information shown']]
    """
    from cardiobench.models.custom import check_encoder
    from cardiobench.report.evaluation import EvaluationResults
    from cardiobench.runner.given_embeddings import read_given
    from cardiobench.runner.run import run

    models = list(model) if isinstance(model, Sequence) and not isinstance(model, str) else [model]
    names = [str(one) for one in models if isinstance(one, str | Path)]
    if not models and embeddings is None:
        raise BadConfig(
            "no model was given. Give a Hub id, a folder, FILE.py:Class or an encoder object, or embeddings."
        )
    file = None if embeddings is None or hasattr(embeddings, "columns") else embeddings
    given = {"models": names, "embeddings": file, "tasks": tasks, "protocols": protocols, **options}
    config = make_config(RunConfig, given)
    encoders = [one for one in models if not isinstance(one, str | Path)]
    for encoder in encoders:
        check_encoder(encoder)
    if embeddings is not None and file is None:
        encoders += read_given(config, embeddings).values()
        config = replace(config, model_name="")
    summary = run(config, encoders=encoders)
    if summary.no_result and summary.is_empty:
        raise NoResult(summary.no_result)
    if summary.no_result:
        warnings.warn(as_arguments(summary.no_result), stacklevel=3)
    return EvaluationResults(summary.results, config.output_dir)


def _named_options(function: Callable[..., Any]) -> Signature:
    """Return the signature with the fields of `RunOptions` and their defaults in place of `**options`.

    A default that depends on the machine, such as the cache folder, is shown as `...`.
    """
    plain = signature(function)
    own = [one for one in plain.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    defaults = {one.name: one.default for one in fields(RunConfig)}
    named = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=... if defaults[name] is MISSING or isinstance(defaults[name], Path) else defaults[name],
            annotation=kind,
        )
        for name, kind in get_type_hints(RunOptions).items()
    ]
    return plain.replace(parameters=[*own, *named])


evaluate.__signature__ = _named_options(evaluate)  # type: ignore[attr-defined]  # for help() and notebooks


@user_errors
def score(
    predictions: "str | Path | pd.DataFrame",
    task: str,
    references: "str | Path | pd.DataFrame",
    *,
    allow_missing: bool = False,
    model_name: str = "",
    protocol_name: str = "",
    seen_in_pretraining: bool | str | Sequence[str] | None = None,
    **options: Any,
) -> "ScoreResult":
    """Score predictions of any program.

    Args:
        predictions: File or frame with id and y_pred or p_<class>, one row per test unit.
        task: Name of the task.
        references: File written by `cardiobench references`, or the same table as a data frame. Other tables need id,
            patient_id, split and y_true, and their coverage is unknown.
        allow_missing: Score incomplete predictions; the verdict then counts every missing answer as wrong
            (`ScoreResult.bounds`).
        model_name: Name of the model in tables; empty for the name of the file.
        protocol_name: Name of the procedure behind the predictions, such as `fine_tuned`.
        seen_in_pretraining: Datasets that the model saw in training, "none", or whether it saw this dataset. None uses
            the model's card.
        options: Fields of `cardiobench.results.context.ResultContext`, such as `resamples`, `seed` and `metrics`.

    Raises:
        BadPredictions: Ids are missing, unknown or repeated, or values are invalid.

    >>> references = load_references("phantom_ecg/af")
    >>> predictions = references.query("split == 'test'")[["id"]].assign(y_pred=references["y_true"])
    >>> result = score(predictions, "phantom_ecg/af", references, model_name="a copy of the labels")
    >>> result.score.value, result.floor.value, str(result.verdict.word)
    (1.0, 0.5, 'above the floor')
    """
    from cardiobench.results.context import ResultContext
    from cardiobench.scoring.external_model import describe_model
    from cardiobench.scoring.score import score as score_joined

    truth = _references(references, task)
    joined = _joined(predictions, truth, references, allow_missing)
    facts = options.get("dataset") or truth.facts
    generated = truth.generated or bool(facts.get("twin") or facts.get("generated"))
    about = describe_model(
        joined.task, model_name=model_name, protocol_name=protocol_name, seen_in_pretraining=seen_in_pretraining
    )
    check_names("option of score", options, [one.name for one in fields(ResultContext) if one.name != "suite"])
    if isinstance(options.get("metrics"), str):
        options["metrics"] = (options["metrics"],)
    context = ResultContext(**{"generated": generated, "dataset": facts, **about, **options})
    return score_joined(joined, truth.table, context)


@user_errors
def compare(
    a: "str | Path | pd.DataFrame",
    b: "str | Path | pd.DataFrame",
    task: str,
    references: "str | Path | pd.DataFrame",
    *,
    allow_missing: bool = False,
    **options: Any,
) -> "Comparison":
    """Compare two models on the same patients.

    Args:
        a: Predictions of the first model, in a format accepted by `score`, or the JSON file of a stored result.
        b: Predictions of the second model.
        task: Name of the task.
        references: References, in a format accepted by `score`.
        allow_missing: Compare incomplete predictions; intervals and p-value then cover all possible missing answers.
        options: Options of `cardiobench.scoring.compare.compare`: `metric`, `resamples` and `seed`.

    Returns:
        Both scores, the difference with its interval, the p-value and the outcome.

    Raises:
        BadPredictions: The two do not have predictions for the same units of the same task.

    >>> references = load_references("phantom_ecg/af")
    >>> right = references.query("split == 'test'")[["id"]].assign(y_pred=references["y_true"])
    >>> always_af = right.assign(y_pred="AF")
    >>> comparison = compare(right, always_af, "phantom_ecg/af", references, resamples=100)
    >>> comparison.difference > 0.5
    True
    """
    from cardiobench.report.contests import read_stored, result_file
    from cardiobench.scoring.compare import compare as compare_joined

    truth = _references(references, task)
    first, second = (
        _joined(one, truth, references, allow_missing) if stored is None else read_stored(stored, truth.facts)
        for one, stored in ((one, result_file(one)) for one in (a, b))
    )
    check_names("option of compare", options, ["metric", "resamples", "seed"])
    return compare_joined(first, second, **options)


@user_errors
def load_references(task: str, data_dir: str | Path | None = None) -> "pd.DataFrame":
    """Return the references of a task, as written by `cardiobench references`; recordings are not needed.

    Args:
        task: Name of the task.
        data_dir: Raw or prepared folder; None = CARDIOBENCH_DATA. Generated and bundled data need none.

    Returns:
        id, patient_id, split, y_true and group columns, one row per unit; `labelled` is 0 for a unit without a label.
        The other columns name the release.

    Raises:
        MissingData: The tables of the release were not found.

    >>> load_references("phantom_ecg/af")[["id", "patient_id", "split", "y_true"]].head(2)
             id patient_id  split y_true
    0  p00001_1     p00001  train     AF
    1  p00001_2     p00001  train     AF
    """
    from cardiobench.runner.external_predictions import task_references

    if not isinstance(data_dir, str | Path | None):
        raise BadConfig(f"data_dir {data_dir!r}: expected a folder, got {type(data_dir).__name__}.")
    return task_references(task, None if data_dir is None else Path(data_dir))[0].to_frame()


def _references(source: "str | Path | pd.DataFrame", task: str) -> "References":
    from cardiobench.data import catalog
    from cardiobench.data.references_file import read_references

    return read_references(source, catalog.task(task))


def _joined(
    predictions: "str | Path | pd.DataFrame",
    references: "References",
    source: "str | Path | pd.DataFrame",
    allow_missing: bool,
) -> "Predictions":
    from cardiobench.scoring.external import join_external, renewal_command

    renewal = renewal_command(references.task, source)
    return join_external(predictions, references, renewal=renewal, allow_missing=allow_missing)


@user_errors
def load_dataset(
    name: str,
    data_dir: str | Path | None = None,
    *,
    split: str | None = None,
    streaming: bool = False,
    allow_missing: bool = False,
    **options: Any,
) -> "datasets.DatasetDict | datasets.Dataset | datasets.IterableDatasetDict | datasets.IterableDataset":
    """Load a dataset of the benchmark as a `datasets` object, from its raw folder, a prepared folder or the Hub, with caching.

    Without local data, recordings are read from the Hub at the tag of this dataset version.

    Args:
        name: Name such as "tmed2" or "cardiobench/tmed2".
        data_dir: Raw or prepared folder; None = CARDIOBENCH_DATA, else the Hub. Generated and bundled data need none.
        split: One split only.
        streaming: Read rows on demand; from the Hub this avoids downloading the rest. Iterate to the end of a split: a
            script that stops in the middle may abort at exit (datasets#7566).
        allow_missing: Accept an incomplete copy.
        options: Options of `DatasetBuilder.download_and_prepare` for a raw folder, such as `num_proc`.

    Raises:
        MissingData: The data is neither local nor on the Hub, or is incomplete.

    >>> load_dataset("phantom_ecg", split="validation").num_rows
    32
    """
    import datasets

    from cardiobench.data import catalog
    from cardiobench.data.hub_data import stream_published
    from cardiobench.data.open import absence, parquet_folder
    from cardiobench.data.prepared import load_prepared

    name = check_text("dataset", name).removeprefix("cardiobench/")
    kind = catalog.builder(name)
    if split is not None and check_text("split", split).partition("[")[0] not in kind.SPEC.splits:
        raise unknown_name("split", split, kind.SPEC.splits)
    if data_dir is not None and (not isinstance(data_dir, str | Path) or "\0" in str(data_dir)):
        raise MissingData(f"{data_dir!r:.60} is not a folder. Give the path of the raw or the prepared data.")
    if streaming and data_dir is None and (problem := absence(name)):
        splits = stream_published(kind.SPEC, problem)
        return splits if split is None else splits[split]
    folder = parquet_folder(name, data_dir, published=True)
    if folder is not None:
        splits = load_prepared(folder, kind.SPEC)
        if streaming:
            splits = datasets.IterableDatasetDict({key: rows.to_iterable_dataset() for key, rows in splits.items()})
        return splits if split is None else splits[split]
    builder = kind(data_dir=None if data_dir is None else str(data_dir), allow_missing=allow_missing)
    if streaming:
        return builder.as_streaming_dataset(split=split)
    builder.download_and_prepare(**options)
    return builder.as_dataset(split=split)
