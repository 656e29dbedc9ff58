"""The layout of the PhysioNet/CinC Challenge 2021 (version 1.0.3): one header a record, with the diagnoses in comments.

`training/<source>/g1/E00001.hea` beside `E00001.mat`; below the signal lines stand `# Age: 66`, `# Sex: Female` and
`# Dx: 426783006,59118001` (SNOMED CT), in older copies without the blank after `#`. Only headers are read here, as text.
"""

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.ecg_labels import conduction, fibrillation, snomed_names
from cardiobench.data.splits import hashed_split

COLUMNS = {"sex": "string", "age": "float64", "dx": "string", "cd_paper": "string", "af_paper": "string"}
OLDEST = 120  # years; a number above, or below 0, is no age

_SEXES = {"male": "M", "m": "M", "female": "F", "f": "F"}


@dataclass(frozen=True)
class Patient:
    """What the comments of a header say.

    Attributes:
        sex: F, M, or None where it is unknown.
        age: years, or None where it is unknown.
        dx: SNOMED CT codes in their order; empty where the header has none.
    """

    sex: str | None
    age: float | None
    dx: tuple[str, ...]


def parse_comments(text: str) -> Patient:
    """Return the age, sex and diagnoses in the text of a header, with or without a blank after `#`."""
    lines = (line.lstrip("#").partition(":") for line in text.splitlines() if line.startswith("#"))
    fields = {key.strip().lower(): value.strip() for key, _, value in lines}
    codes = (code.strip() for code in fields.get("dx", "").split(","))
    return Patient(
        sex=_SEXES.get(fields.get("sex", "").lower()),
        age=_age(fields.get("age", "")),
        dx=tuple(code for code in codes if code and code.lower() != "unknown"),
    )


def _age(text: str) -> float | None:
    try:
        age = float(text)
    except ValueError:
        return None
    return age if math.isfinite(age) and 0 <= age <= OLDEST else None


def source_folder(raw: Path, source: str) -> Path | None:
    """Return the folder of a source's records, or None where there is none; `raw` is the release or its folder `training`."""
    return next((folder for folder in (raw / "training" / source, raw / source) if folder.is_dir()), None)


def analysis_rows(raw: Path, folder: Path, prefix: str) -> Iterator[dict]:
    """Yield one row per record below a folder: labels under both definitions, the codes as they stand, and the patient.

    The release has no patient ids, so a record is its own patient. A record without diagnoses has no labels. A signal
    file without its header becomes a row whose file, the header, is missing, so that it is named and counted.

    Args:
        raw: raw folder.
        folder: folder of the source, `raw` or below it.
        prefix: what the names of its records begin with.
    """
    for directory, folders, files in os.walk(folder):
        folders.sort()
        relative = Path(directory).relative_to(raw)
        records = {name for name in files if name.startswith(prefix) and name.endswith((".hea", ".mat"))}
        for name in sorted(records):
            record = name[:-4]
            if name.endswith(".hea"):
                comments = parse_comments((Path(directory) / name).read_text(encoding="latin-1"))
                yield _row(record, (relative / f"{record}.mat").as_posix(), comments)
            elif f"{record}.hea" not in records:
                yield _row(record, (relative / f"{record}.hea").as_posix(), Patient(None, None, ()))


def _row(record: str, media: str, patient: Patient) -> dict:
    codes = frozenset(patient.dx)
    known = bool(codes)
    return {
        "id": record,
        "patient_id": record,
        "split": hashed_split(record),
        "media": media,
        "sex": patient.sex,
        "age": patient.age,
        "dx": ",".join(patient.dx) or None,
        "cd": conduction(codes, "snomed") if known else None,
        "af": fibrillation(codes, "snomed") if known else None,
        "cd_paper": conduction(codes, "snomed", "paper") if known else None,
        "af_paper": fibrillation(codes, "snomed", "paper") if known else None,
    }


def unknown_codes(dx: Iterable[str | None]) -> dict[str, int]:
    """Return the codes that the Challenge does not list, and how many records carry each, the most frequent first.

    Args:
        dx: the column of that name.
    """
    counts = Counter(code for text in dx if isinstance(text, str) for code in set(text.split(",")))
    return {code: count for code, count in counts.most_common() if code not in snomed_names()}


def findings(listed: pd.DataFrame) -> Iterator[AuditFinding]:
    """Yield the audit findings about headers: unknown codes, and records without a label because they have no code."""
    unknown = unknown_codes(listed["dx"])
    examples = tuple(f"{code} ({count})" for code, count in unknown.items())
    yield AuditFinding("SNOMED codes that the Challenge does not list", len(unknown), "codes", examples, "kept in `dx`")
    without = tuple(listed.loc[listed["dx"].isna(), "id"])
    yield AuditFinding("records without a diagnosis", len(without), "records", without, "they have no labels")
