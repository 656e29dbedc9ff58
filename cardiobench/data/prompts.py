"""Prompts for zero-shot prediction: versioned data in the dataset's folder."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cardiobench.core.command import command
from cardiobench.core.errors import BadData, NotApplicable, UnknownName, counted, first_n
from cardiobench.data import catalog
from cardiobench.data.published_prompts import clone_files, read_clone
from cardiobench.data.spec import Task

# Prompts for views and measurements are shared by all echo datasets.
COMMON = Path(__file__).with_name("common_prompts.json")
TEMPLATES = "templates"
"""Key of the texts of a number."""
PLACEHOLDER = "<#>"
"""Sign in a template that stands for the number."""
VIEW = "view"
SHOWN = 20
"""Maximum number of problems in a message."""


def _read(path: Path, tasks: Iterable[Task] = ()) -> dict[str, Any]:
    """Read a prompt set; refuse it with everything that is wrong, also for some tasks whose targets it has."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        wrong = list(problems(content))
    except (OSError, ValueError, RecursionError) as error:
        content, wrong = {}, [str(error)]
    lacking = list(_lacking(content, tasks))
    # A set that only lacks views does not apply to a task with these views, but to others.
    if wrong or [one for target, one in lacking if target != VIEW]:
        wrong += [one for _, one in lacking]
        more = f"; and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        raise BadData(
            f"{path} is not a prompt set ({'; '.join(wrong[:SHOWN])}{more}). A template is written by: "
            f"{command('prompts', 'DATASET', '--out', 'FILE')}"
        )
    return content


def check_prompts(path: Path, tasks: Iterable[Task]) -> None:
    """Refuse a prompt set of the user, before anything is computed, with everything that is wrong for some tasks.

    Raises:
        BadData: The file is not a prompt set, or a task whose target it has lacks texts.
    """
    if not path.is_dir():
        _read(path, tasks)


def _lacking(content: Any, tasks: Iterable[Task]) -> Iterator[tuple[str, str]]:
    """Yield target and description for each task that lacks texts of a prompt set."""
    for task in tasks:
        chosen = content.get(task.target) if isinstance(content, dict) else None
        if isinstance(chosen, dict) and (lacking := [key for key in keys_of(task) if not chosen.get(key)]):
            other = first_n(sorted(set(chosen) - set(keys_of(task))))
            unused = f"; it has {other}, which the task does not use" if other else ""
            yield task.target, f"{task.name} lacks texts for {', '.join(lacking)}{unused}"


def problems(content: Any) -> Iterator[str]:
    """Yield what is wrong in a prompt set, which has a version and, per target, a mapping from key to texts."""
    if not isinstance(content, dict):
        yield f"it is a {type(content).__name__}; expected an object"
        return
    if not isinstance(content.get("version"), str | int | float):
        yield f"its version is {content.get('version')!r:.40}; expected a text or a number"
    for target, chosen in content.items():
        if target == "version":
            continue
        if not isinstance(chosen, dict):
            yield f"'{target:.40}' is not a mapping to lists of texts"
            continue
        for key, texts in chosen.items():
            yield from (f"'{target:.40}', '{key:.40}' {wrong}" for wrong in _wrong_texts(key, texts))


def _wrong_texts(key: str, texts: Any) -> Iterator[str]:
    if not isinstance(texts, list):
        yield "is not a list of strings"
        return
    strings = [text for text in texts if isinstance(text, str)]
    if len(strings) < len(texts):
        yield "is not a list of strings"
    if blank := sum(not text.strip() for text in strings):
        yield f"has {counted(blank, 'empty text')}"
    if key == TEMPLATES and (bare := [text for text in strings if text.strip() and PLACEHOLDER not in text]):
        yield f"has {counted(len(bare), 'text')} without {PLACEHOLDER}, such as {bare[0]!r:.60}"


def prompt_files(task: Task, file: Path | None = None) -> list[Path]:
    """Return the files that may contain the prompts of a task, in order of precedence."""
    if file:
        return clone_files(file) if file.is_dir() else [file]
    dataset_prompts = catalog.dataset_folder(task.dataset) / "prompts.json"
    return [dataset_prompts, COMMON] if dataset_prompts.is_file() else [COMMON]


def prompts(task: Task, file: Path | None = None) -> tuple[Mapping[str, Any], str]:
    """Return the prompts of a task and the version of their set: those of the dataset, else the common ones.

    Classification: class -> texts. Regression: {"templates": texts with `<#>` for the number}.

    Args:
        task: Task with classes, or with a number to fill in.
        file: JSON file in the format of `prompts.json`, or a clone of the repository of the echo benchmark or of MERL,
            which replaces the dataset's own prompts.

    Raises:
        NotApplicable: The set has no prompts for this task.
    """
    contents = [read_clone(file)] if file and file.is_dir() else map(_read, prompt_files(task, file))
    content = next((content for content in contents if task.target in content), None)
    if content is None:
        source = file or f"hf_datasets/{task.dataset}/prompts.json"
        raise NotApplicable(f"there are no prompts for {task.name} (none for '{task.target}' in {source})")
    chosen = content[task.target]
    if lacking := [key for key in keys_of(task) if not chosen.get(key)]:
        names = ", ".join(lacking)
        if task.target == VIEW:
            raise NotApplicable(f"{file} has no prompts for the view {names}. Run {task.dataset}/view_named")
        other = sorted(set(chosen) - set(keys_of(task)))
        unused = f" It has {first_n(other)}, which {task.name} does not use." if other else ""
        raise UnknownName(f"the prompts of {task.name} lack {names}. Add a list of texts for each.{unused}")
    return chosen, str(content["version"])


def keys_of(task: Task) -> tuple[str, ...]:
    """Return the keys under which a task needs texts: its classes, or `templates` for a number."""
    return (TEMPLATES,) if task.rules.answer == "number" else tuple(task.classes)


def template(tasks: Iterable[Task]) -> dict[str, Any]:
    """Return a prompt set for some tasks of a dataset, to be edited.

    It has the prompts of this package where there are some, and empty lists elsewhere.
    """
    content: dict[str, Any] = {"version": "1"}
    for task in tasks:
        if task.rules.answer == "number" and task.prompt_grid is None:
            continue  # Nothing says which numbers to try.
        try:
            chosen, _ = prompts(task)
        except NotApplicable:
            chosen = {}
        content[task.target] = {key: list(chosen.get(key, ())) for key in keys_of(task)}
    return content


def prompt_digest(task: Task, file: Path | None = None) -> str:
    """Return the first 16 hex digits of the SHA-256 of a task's prompts."""
    chosen, _ = prompts(task, file)
    return hashlib.sha256(json.dumps(chosen, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]


def as_text(content: Mapping[str, Any]) -> str:
    """Return a prompt set as the text of its file."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
