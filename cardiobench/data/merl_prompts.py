"""Prompts of MERL (arXiv:2403.06659), read from a clone of its repository because they are not part of this package."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cardiobench.core.errors import BadData

FILE = "zeroshot/CKEPE_prompt.json"
VERSION = "MERL, zeroshot/CKEPE_prompt.json"
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


def read_merl(folder: Path) -> Mapping[str, Any]:
    """Return the prompts of the tasks evaluated by MERL in the form of `prompts.json`, one per class.

    MERL's names are those of PTB-XL without trailing underscores.

    Raises:
        BadData: The file has a different format.
    """
    path = folder / FILE
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
    return {"version": VERSION, "nine": nine, **dict.fromkeys(PTB_XL, of_ptb_xl)}
