"""Prompts for zero-shot prediction: versioned data in the dataset's folder."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cardiobench.core.errors import BadData, NotApplicable
from cardiobench.core.registry import unknown_name
from cardiobench.data import catalog
from cardiobench.data.published_prompts import clone_files, read_clone
from cardiobench.data.spec import Task

# Prompts for views and measurements are shared by all echo datasets.
COMMON = Path(__file__).with_name("common_prompts.json")


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        wrong = _first_wrong(content)
    except (OSError, ValueError, RecursionError) as error:
        wrong = str(error)
    if wrong:
        raise BadData(f"{path} is not a prompt set ({wrong}). Give a JSON object like a dataset's prompts.json.")
    return content


def _first_wrong(content: Any) -> str:
    """Return the problems of a prompt set (per target: key -> texts, and a version); empty if valid."""
    if not isinstance(content, dict):
        return f"a {type(content).__name__}"
    if not isinstance(content.get("version"), str | int | float):
        return f"its version is {content.get('version')!r:.40}; expected a text or a number"
    for target, chosen in content.items():
        if target == "version":
            continue
        if not isinstance(chosen, dict):
            return f"'{target:.40}' is a {type(chosen).__name__}; expected a mapping to lists of texts"
        for key, texts in chosen.items():
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                return f"'{target:.40}', '{key:.40}' is not a list of strings"
    return ""


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
    needed = ("templates",) if task.rules.answer == "number" else task.classes
    for key in needed:
        if not chosen.get(key) and task.target == "view":
            raise NotApplicable(f"{file} has no prompts for the view {key}. Run {task.dataset}/view_named")
        if not chosen.get(key):
            raise unknown_name(f"prompts of {task.name} for", key, chosen)
    return chosen, str(content["version"])


def prompt_digest(task: Task, file: Path | None = None) -> str:
    """Return the first 16 hex digits of the SHA-256 of a task's prompts."""
    chosen, _ = prompts(task, file)
    return hashlib.sha256(json.dumps(chosen, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]
