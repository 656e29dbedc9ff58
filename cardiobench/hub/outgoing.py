"""Checks of everything that leaves this machine: no ids of test units, no local paths, no tokens."""

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from cardiobench.core.config import RESAMPLES, SEED, Settings
from cardiobench.core.errors import BadData, LicenceError, UnknownName
from cardiobench.core.foreign import read_parquet
from cardiobench.core.io import files_below, to_plain
from cardiobench.core.setting import code_location
from cardiobench.data import catalog
from cardiobench.data.prepared_note import Preparation
from cardiobench.data.prompts import prompt_digest
from cardiobench.hub.local_scores import FEWEST, too_few, what_leaves, without_small_cells
from cardiobench.hub.submission import TOKEN, without_additions
from cardiobench.models.files import display_name
from cardiobench.results.predictions_file import FORMAT
from cardiobench.results.record import checksum
from cardiobench.results.score_result import OLDER_RULES, ScoreResult
from cardiobench.results.versions import unknown_coverage

Content = bytes | Path
"""Content of a file: its bytes, or a path if it is large."""

# An absolute path of POSIX or Windows, a home folder, a file URL, or a path that leaves the working folder.
LOCAL_PATH = re.compile(
    r"""(?:(?<=[\s"'`(=,:;\[{<])|^)(?:file://\S*|~[\w.-]*/[^\s"'`,;)\]}>]*|\.\.?/[^\s"'`,;)\]}>]*|/[^/\s"'`,;)\]}>]+/[^\s"'`,;)\]}>]*"""
    r"""|[A-Za-z]:[\\/][^\s"'`,;)\]}>]*|\\\\[^\s"'`,;)\]}>]+)"""
)
_WORD = re.compile(r"[\w.+-]+")
PATH_MARK, ID_MARK, TOKEN_MARK = "(local path)", "(id)", "(token)"


def public_result(result: ScoreResult, name: str = "", ids: Collection[str] = ()) -> ScoreResult:
    """Return a result without private information.

    Args:
        result: Result as saved.
        name: Name of the model's repository; empty for the name under which it was evaluated.
        ids: Ids of test units and patients, which must not occur in any text.

    Returns:
        The same result if there is nothing to remove, else a result with a new checksum, whose stamp has the
        checksum of the original.
    """
    own = str(result.model["name"])
    model = {**result.model, "name": name or public_name(own)}
    if name:
        model.pop("local", None)
    elif model["name"] != own:
        model["local"] = True
    named = replace(result, model=model)
    if result.dataset.get("local"):
        named = without_small_cells(named)
    # Texts are cut last, because a cut path or token would not be recognised.
    shown = without_additions(_clean(named, frozenset(word for word in ids if not word.isdigit())))
    if shown.to_json() == result.to_json():
        return result
    source = result.stamp.get("source_checksum") or checksum(result.to_json())
    return replace(shown, stamp={**shown.stamp, "source_checksum": source})


def leave_out_local(
    results: Sequence[ScoreResult], named: Collection[str], on_diff: Callable[[str], None]
) -> list[ScoreResult]:
    """Leave out the results of the user's own datasets, unless their names are given.

    Args:
        results: Results of any datasets.
        named: Names of the user's own datasets whose results may be published.
        on_diff: Function called with a sentence for each omitted dataset.

    Raises:
        LicenceError: No results are left.
    """
    kept = [result for result in results if not result.dataset.get("local") or result.dataset["name"] in named]
    held = sorted({str(result.dataset["name"]) for result in results if result not in kept})
    if held and not kept:
        raise LicenceError(
            f"all {len(results)} results are of your own data ({', '.join(held)}), which stay here. To publish these scores, "
            f"without ids: --local-dataset {' '.join(held)}"
        )
    for result in (few := [result for result in kept if result.dataset.get("local") and too_few(result)]):
        on_diff(f"left out: {result.task} {result.label} of fewer than {FEWEST} patients")
    kept = [result for result in kept if result not in few]
    if few and not kept:
        raise LicenceError(f"all {len(few)} results are of fewer than {FEWEST} patients, and stay here.")
    for result in kept:
        if result.dataset.get("local"):
            on_diff(f"leaves this machine: {what_leaves(public_result(result))}")
    for name in held:
        on_diff(f"left out: results of {name}, which is your own data (--local-dataset {name} publishes its scores)")
    return kept


def public_note(note: Preparation) -> Preparation:
    """Return the note of a prepared folder with only the counts of missing files and recordings."""
    return replace(
        note,
        missing=(PATH_MARK,) * len(note.missing),
        unreadable=(ID_MARK,) * len(note.unreadable),
        linked=(PATH_MARK,) * len(note.linked),
    )


def public_settings(config: Settings) -> dict[str, Any]:
    """Return the settings of a run without paths, hosts and tokens."""
    values = {one.name: getattr(config, one.name) for one in fields(config)}
    values = {name: value for name, value in values.items() if not isinstance(value, Path)}
    if models := values.get("models"):
        values["models"] = tuple(public_name(display_name(name)) for name in models)
    if backend := values.get("backend"):
        values["backend"] = backend.partition("=")[0]
    values |= {name: _without_places(values[name]) for name in ("options", "preprocessing") if name in values}
    plain: dict[str, Any] = to_plain(_clean(values, frozenset()))
    return plain


def _without_places(value: Any) -> Any:
    """Return the same tree with every text removed that may be a path, including relative ones."""
    if isinstance(value, str):
        return PATH_MARK if "/" in value or "\\" in value else value
    if isinstance(value, Mapping):
        return {key: _without_places(entry) for key, entry in value.items()}
    return [_without_places(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def public_name(model: str) -> str:
    """Return the name of a model without the parent folders of a path."""
    if (code := code_location(model)) and code[0].endswith(".py"):
        return f"local: {Path(code[0]).name}:{code[1]}"
    return Path(model).name if Path(model).is_absolute() or LOCAL_PATH.search(model) else model


def _clean(value: Any, ids: frozenset[str]) -> Any:
    """Return the same tree with every text cleaned."""
    if isinstance(value, str):
        return clean_text(value, ids)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _clean(getattr(value, field.name), ids) for field in fields(value)})
    if isinstance(value, Mapping):
        return {clean_text(str(key), ids): _clean(entry, ids) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_clean(entry, ids) for entry in value)
    return value


def clean_text(text: str, ids: Collection[str] = ()) -> str:
    """Return the text without local paths, tokens and ids of test units."""
    text = TOKEN.sub(TOKEN_MARK, LOCAL_PATH.sub(PATH_MARK, text))
    return _WORD.sub(lambda match: ID_MARK if match[0] in ids or match[0].rstrip(".") in ids else match[0], text)


def ids_below(folder: Path) -> set[str]:
    """Return the ids of units and patients in all predictions of a folder, or in the folder of a result file."""
    ids: set[str] = set()
    for file in files_below(folder if folder.is_dir() else folder.parent, "*.predictions.parquet"):
        try:
            table = read_parquet(file, FORMAT)
        except BadData:
            continue  # Ids of damaged predictions are in no result.
        ids |= {str(one) for name in ("id", "patient_id") for one in table[name].to_pylist()}
    return ids


def check_outgoing(path: str, content: Content | None) -> None:
    """Refuse a file that contains a token or a local path.

    Args:
        path: Path in the repository.
        content: Bytes to search; for a large file only its name is checked.

    Raises:
        LicenceError: The file must not be published.
    """
    text = path.encode() + (content if isinstance(content, bytes) else b"")
    for what, secret in _secrets().items():
        if secret in text:
            raise LicenceError(f"{path} was not sent: it holds {what}. Remove it and push again.")


def _secrets() -> dict[str, bytes]:
    from huggingface_hub import get_token

    home, here = str(Path.home()), str(Path.cwd())
    values = {
        "your token": get_token() or "",
        "the path of your home folder": home if home.count(os.sep) > 1 else "",
        "the path of the working folder": here if here.count(os.sep) > 1 else "",
        "the path of the raw data": os.environ.get("CARDIOBENCH_DATA", ""),
        "the path of the cache": os.environ.get("CARDIOBENCH_CACHE", ""),
    }
    return {name: value.encode() for name, value in values.items() if len(value) > 4}


def not_a_benchmark_score(result: ScoreResult) -> list[str]:
    """Return the reasons why a result is a rehearsal, not a score of the benchmark; empty for a score of a complete release."""
    facts = result.dataset
    try:
        task = catalog.task(result.task)
    except UnknownName:
        return [f"no dataset or extension that is installed here has the task {result.task}"]
    if catalog.spans_datasets(task):
        return ["combined from results of several datasets, which are pushed separately"]
    asked_with = result.options.get("prompt_digest")
    draws, seed = result.stamp.get("resamples", RESAMPLES), result.stamp.get("seed", SEED)
    reasons = {
        "generated recordings": catalog.spec(task.dataset).generated or (result.generated and not facts.get("twin")),
        "a synthetic twin": facts.get("twin"),
        f"only the first {facts.get('limit')} patients": facts.get("limit"),
        f"{result.scored} of {result.expected} {task.rules.counted} scored": (
            result.expected is not None and result.scored < result.expected
        ),
        unknown_coverage(result): result.expected is None
        or not (facts.get("digest") or facts.get("references_digest")),
        OLDER_RULES: result.outdated,
        "files of the release are missing": facts.get("missing_files") or facts.get("absent_rows"),
        f"scored with {draws} draws of patients, not {RESAMPLES}: leave --resamples out": draws != RESAMPLES,
        f"run with the definitions of --profile {result.profile}": result.profile,
        f"run with seed {seed}, not {SEED}: leave --seed out": seed != SEED and not result.profile,
        _reused(result): result.computed_by,
        "prompts other than the dataset's": asked_with is not None and asked_with != prompt_digest(task),
    }
    return [reason for reason, holds in reasons.items() if holds]


def _reused(result: ScoreResult) -> str:
    """Return why a reused result cannot be pushed."""
    source = result.stamp.get("reused") or ""
    named = (
        ", ".join(f"{name} {value}" for name, value in source.items()) if isinstance(source, Mapping) else str(source)
    )
    return f"reused; only its owner can push it ({named})"


def leave_out_reused(results: Sequence[ScoreResult], on_diff: Callable[[str], None]) -> list[ScoreResult]:
    """Leave out results that somebody else computed, which are never pushed, not even as rehearsals.

    Args:
        results: Results of any datasets.
        on_diff: Function called with a sentence for each omitted result.

    Raises:
        BadData: No results are left.
    """
    reused = [f"{one.task} {one.label} is {_reused(one)}" for one in results if one.computed_by]
    if reused and len(reused) == len(results):
        raise BadData(f"nothing was pushed: {'; '.join(reused)}.")
    for sentence in reused:
        on_diff(f"left out: {sentence}")
    return [one for one in results if not one.computed_by]
