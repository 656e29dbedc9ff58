"""Layout of the PhysioNet/CinC Challenge 2021 (version 1.0.3): one header per record, with the diagnoses in comments.

A record consists of `training/<source>/g1/E00001.hea` and `E00001.mat`. The header has comments `# Age: 66`, `# Sex:
Female` and `# Dx: 426783006,59118001` (SNOMED CT), in older copies without the blank after `#`. This module reads
headers as text; the caller passes a function that reads signals.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from cardiobench.core.errors import BadData
from cardiobench.data.audit_finding import AuditFinding
from cardiobench.data.ecg_labels import conduction, fibrillation, snomed_names
from cardiobench.data.splits import hashed_split

COLUMNS = {"sex": "string", "age": "float64", "dx": "string", "cd_paper": "string", "af_paper": "string"}
OLDEST = 120  # Years; larger or negative numbers are not ages.


_CODE = re.compile(r"[0-9]+")
_SEXES = {"male": "M", "m": "M", "female": "F", "f": "F"}


@dataclass(frozen=True)
class Patient:
    """Patient facts in the comments of a header.

    Attributes:
        sex: F, M, or None if unknown.
        age: Age in years; None if unknown.
        dx: SNOMED CT codes in order; empty if the header has none.
    """

    sex: str | None
    age: float | None
    dx: tuple[str, ...]


def parse_comments(path: Path, text: str) -> Patient:
    """Parse age, sex and diagnoses in the text of a header, with or without a blank after `#`.

    Raises:
        BadData: Diagnoses are not SNOMED codes, or occur twice.
    """
    fields: dict[str, str] = {}
    codes: tuple[str, ...] | None = None
    for line, content in enumerate(text.splitlines(), 1):
        if not content.startswith("#"):
            continue
        key, _, value = content.lstrip("#").partition(":")
        key = key.strip().lower()
        if key == "dx":
            if codes is not None:
                raise BadData(f"{path}, line {line}: 'Dx' occurs twice. Download the header again.")
            codes = _codes(path, line, value)
        fields[key] = value.strip()
    return Patient(_SEXES.get(fields.get("sex", "").lower()), _age(fields.get("age", "")), codes or ())


def _codes(path: Path, line: int, text: str) -> tuple[str, ...]:
    codes = [code.strip() for code in text.split(",")]
    codes = [code for code in codes if code and code.lower() not in ("unknown", "nan")]
    for code in codes:
        if not _CODE.fullmatch(code):
            raise BadData(
                f"{path}, line {line}: 'Dx' has {code!r}; expected SNOMED CT codes, numbers with a comma between them. "
                "Download the header again."
            )
    return tuple(codes)


def _age(text: str) -> float | None:
    age = float(text) if re.fullmatch(r"[0-9]+(\.[0-9]*)?", text.strip()) else math.nan
    return age if 0 <= age <= OLDEST else None


def record_folders(raw: Path, names: Iterable[str]) -> tuple[Path, ...]:
    """Return the folders with the records of a source: those with its names below `raw` or `raw/training`."""
    folders = (base / name for name in names for base in (raw / "training", raw))
    return tuple(folder for folder in folders if folder.is_dir())


def analysis_rows(raw: Path, folder: Path, record: re.Pattern[str]) -> Iterator[dict]:
    """Yield one row per record below a folder: labels under both definitions, the codes, and the patient.

    The release has no patient ids, so each record counts as a patient. A record without diagnoses has no labels. A
    signal file without a header becomes a row with a missing file, so that it is reported and counted.

    Args:
        raw: Raw folder.
        folder: Folder of the source, `raw` or below it.
        record: Pattern of the record names.
    """
    for directory, files in _directories(folder):
        relative = directory.relative_to(raw)
        parts: dict[str, dict[str, str]] = {}
        for name in files:
            stem, suffix = name[:-4], name[-4:].lower()
            if suffix in (".hea", ".mat") and record.fullmatch(stem):
                parts.setdefault(stem, {})[suffix] = name
        for stem, names in sorted(parts.items()):
            path = directory / names.get(".hea", f"{stem}.hea")
            if path.is_file():
                comments = parse_comments(path, path.read_text(encoding="latin-1"))
                yield _row(stem, (relative / names.get(".mat", f"{stem}.mat")).as_posix(), comments)
            else:
                yield _row(stem, (relative / f"{stem}.hea").as_posix(), Patient(None, None, ()))


def _directories(folder: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield the folders below a folder with the names of their files, following links and visiting each folder once."""
    seen: set[str] = set()
    for directory, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(directory)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders.sort()
        yield Path(directory), files


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


def codes_of(row: Mapping[str, object]) -> frozenset[str]:
    """Return the SNOMED codes of a row of `analysis_rows`."""
    return frozenset(str(row["dx"]).split(",")) if row["dx"] else frozenset()


def unknown_codes(dx: Iterable[str | None]) -> dict[str, int]:
    """Return the codes that the Challenge does not list and the number of their records, most frequent first.

    Args:
        dx: Column `dx`.
    """
    counts = Counter(code for text in dx if isinstance(text, str) for code in set(text.split(",")))
    return {code: count for code, count in counts.most_common() if code not in snomed_names()}


def audit_findings(listed: pd.DataFrame) -> Iterator[AuditFinding]:
    """Yield audit findings about headers: unknown codes, and records without codes and therefore without labels."""
    unknown = unknown_codes(listed["dx"])
    examples = tuple(f"{code} ({count})" for code, count in unknown.items())
    yield AuditFinding("SNOMED codes unknown to the Challenge", len(unknown), "codes", examples, "kept in `dx`")
    without = tuple(listed.loc[listed["dx"].isna(), "id"])
    yield AuditFinding("records without a diagnosis", len(without), "records", without, "they have no labels")
