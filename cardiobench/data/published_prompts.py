"""Prompts of arXiv:2510.00520 and of MERL (arXiv:2403.06659), read from clones of their repositories.

Those of the first have no licence, and none are part of this package. Files of Python code are parsed for literals without
running them.
"""

import ast
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from cardiobench.core.errors import BadData

FILES = ("src/prompts.py", "src/regression.py")
VERSION = "arXiv:2510.00520, released code"
# Target -> class -> key of `zero_shot_prompts`.
_CLASSES: Mapping[str, Mapping[str, str]] = {
    "as": {"no_AS": "as_absent", "AS": "as_present"},
    "asd": {"no_ASD": "asd_absent", "ASD": "asd_present"},
    "pah": {"no_PAH": "pah_absent", "PAH": "pah_present"},
    "rwma": {"normal": "normal_wall_motion", "abnormal": "wall_motion_abnormality"},
    "stemi": {"no_STEMI": "no_stemi", "STEMI": "stemi"},
}
_MEASUREMENTS = ("lvidd", "ivsd", "lvpwd")

MERL_FILE = "zeroshot/CKEPE_prompt.json"
MERL_VERSION = "MERL, zeroshot/CKEPE_prompt.json"
PTB_XL = ("super", "sub", "diag", "form", "rhythm", "all")
# Classes of CPSC2018 -> names in MERL's table of the test set.
NINE = {
    "NSR": "NORM",
    "AF": "AFIB",
    "IAVB": "1AVB",
    "LBBB": "CLBBB",
    "RBBB": "CRBBB",
    "PAC": "PAC",
    "PVC": "VPC",
    "STD": "STD",
    "STE": "STE",
}


def clone_files(folder: Path) -> list[Path]:
    """Return the files of a clone that contain prompts; raises `BadData` if the folder is not a clone."""
    if (folder / MERL_FILE).is_file():
        return [folder / MERL_FILE]
    files = [folder / name for name in FILES]
    missing = [name for name, file in zip(FILES, files, strict=True) if not file.is_file()]
    if missing:
        raise BadData(
            f"{folder} is not a clone of the echo benchmark's repository: it lacks {', '.join(missing)}. Give --prompts the folder "
            "that `git clone https://github.com/BioMedIA-MBZUAI/CardioBench` made (for MERL that of "
            "https://github.com/cheliu-computation/MERL-ICML2024), or a JSON file."
        )
    return files


@cache
def read_clone(folder: Path) -> Mapping[str, Any]:
    """Return the prompts of all tasks in the form of `prompts.json`.

    Sentences for classes are stripped, as in the released code; those for numbers are not.

    Raises:
        BadData: The folder is not a clone, or its files have a different format.
    """
    if (folder / MERL_FILE).is_file():
        return read_merl(folder)
    literals: dict[str, Any] = {}
    for file in clone_files(folder):
        literals |= _literals(file)
    try:
        sentences, views = literals["zero_shot_prompts"], literals["view_prompt"]
        return {
            "version": VERSION,
            "ef": {"templates": _texts(sentences["ejection_fraction"])},
            **{name: {"templates": _texts(literals[f"{name}_prompts"])} for name in _MEASUREMENTS},
            **{
                target: {label: _stripped(sentences[key]) for label, key in classes.items()}
                for target, classes in _CLASSES.items()
            },
            "view": {name: _stripped(texts) for name, texts in views.items()},
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise BadData(f"{folder} has no prompts under {error}. Clone the released repository again.") from None


def _texts(value: Any) -> list[str]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(text, str) for text in value):
        raise TypeError(f"{str(value)[:50]!r}, which is not a list of strings")
    return list(value)


def _stripped(value: Any) -> list[str]:
    return [text.strip() for text in _texts(value)]


def _literals(file: Path) -> dict[str, Any]:
    """Return a mapping from name to value of every literal assignment in a module and its classes."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OSError) as error:
        raise BadData(f"{file} is not a valid Python file: {error}") from None
    found: dict[str, Any] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(
            node.value, ast.Dict | ast.Tuple | ast.List
        ):
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name):
                try:
                    found[target.id] = ast.literal_eval(node.value)
                except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                    continue  # Expressions are not prompts.
    return found


def read_merl(folder: Path) -> Mapping[str, Any]:
    """Return the prompts of the tasks evaluated by MERL in the form of `prompts.json`, one per class.

    MERL's names are those of PTB-XL without trailing underscores.

    Raises:
        BadData: The file has a different format.
    """
    path = folder / MERL_FILE
    try:
        sentences = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(sentences, dict) or not all(isinstance(text, str) for text in sentences.values()):
            raise ValueError("expected one sentence under each name")
        nine = {label: [sentences[name]] for label, name in NINE.items()}
    except (ValueError, OSError, RecursionError, KeyError) as error:
        raise BadData(
            f"{path} does not have the format of the release ({error}). Clone the repository again."
        ) from None
    of_ptb_xl = {name: [text] for key, text in sentences.items() for name in (key, f"{key}_", f"_{key}")}
    return {"version": MERL_VERSION, "nine": nine, **dict.fromkeys(PTB_XL, of_ptb_xl)}
