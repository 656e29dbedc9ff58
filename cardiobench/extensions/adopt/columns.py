"""Infer the roles and task kinds of table columns from their names and cells."""

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass

import pandas as pd

from cardiobench.extensions.adopt.kinds import CLASSES, NUMBER, TWO_CLASSES

NAMES = {
    "patient": (
        "patient_id", "patient", "patientid", "subject_id", "subject", "subjectid", "pid", "mrn", "patient_number",
        "patient_no", "patientnumber", "patientennummer", "patienten_nummer", "patienten_id", "patientenid", "patientennr",
        "patienten_nr", "patient_nr", "pat_nr", "pat_id", "numero_patient", "numero_de_patient", "id_patient",
        "identifiant_patient", "id_paciente", "paciente", "numero_paciente", "numero_de_paciente", "id_paziente",
        "paziente", "numero_paziente", "codice_paziente", "codigo_paciente", "n_patient", "no_patient", "nr_patient",
        "num_patient", "n_de_patient", "n_du_patient", "numero_du_patient", "ipp", "patientin", "pat", "patid", "patnr",
        "patientenkennung", "patienten_kennung", "n_paciente", "n_o_paciente", "no_paciente", "nr_paciente", "num_paciente",
        "n_de_paciente", "paciente_id", "nhc", "numero_historia", "numero_de_historia", "historia_clinica",
        "numero_historia_clinica", "n_paziente", "nr_paziente", "num_paziente", "id_assistito", "doente", "utente",
        "n_doente", "n_o_doente", "nr_doente", "id_doente", "numero_doente", "numero_do_doente", "numero_de_doente",
        "n_utente", "n_o_utente", "nr_utente", "id_utente", "numero_utente", "numero_de_utente", "numero_do_paciente",
        "n_o_processo", "n_processo", "numero_processo", "numero_de_processo",
    ),
    "id": ("id", "ecg_id", "exam_id", "record_id", "recording_id", "recording", "record", "file_id", "uid", "ekg_id"),
    "split": ("split", "set", "subset", "partition"),
    "study": ("study_id", "study", "accession", "accession_number"),
    "sex": ("sex", "gender", "geschlecht", "sexe", "genre", "sexo", "genero", "sesso", "genere", "geschl"),
    "age": (
        "age", "age_years", "age_in_years", "alter", "alter_jahre", "alter_in_jahren", "age_ans", "age_annees", "edad",
        "edad_anos", "eta", "eta_anni", "idade", "idade_anos",
    ),
    "site": ("site", "hospital", "centre", "center", "institution"),
    "device": ("device", "machine", "scanner", "manufacturer"),
    "view": ("view",),
}  # fmt: skip
"""Mapping from role to usual column names, compared without regard to case, accents and punctuation.

Patient, sex and age are known in English, German, French, Spanish, Italian and Portuguese.
"""
SPLITS = {
    **dict.fromkeys(
        ("train", "training", "development", "entrainement", "entrenamiento", "addestramento", "treino", "treinamento"),
        "train"),
    **dict.fromkeys(
        ("validation", "valid", "val", "dev", "tune", "validierung", "validacion", "validazione", "validacao"), "validation"),
    **dict.fromkeys(("test", "testing", "held_out", "holdout", "prueba", "teste"), "test"),
}  # fmt: skip
"""Mapping from text in lower case without accents to split, in the languages of `NAMES`."""
SEXES = {
    **dict.fromkeys(
        ("f", "w", "female", "woman", "weiblich", "frau", "femme", "feminin", "feminine", "mujer", "femenino", "femenina",
         "femmina", "femminile", "donna", "mulher", "feminino", "feminina"), "F"),
    **dict.fromkeys(
        ("m", "male", "man", "maennlich", "mannlich", "mann", "homme", "masculin", "hombre", "varon", "masculino",
         "maschio", "maschile", "uomo", "homem"), "M"),
}  # fmt: skip
"""Mapping from text in lower case without accents to sex, in the languages of `NAMES`."""
_AMBIGUOUS = {"h", "v"}
"""Beside one of these, `m` may be a woman: Spanish writes hombre or varón, and mujer. Beside `f` alone, they are men."""
BARE_NUMBERS = ("n", "no", "n_o", "nr", "num", "number", "numero", "nummer")
"""Names that may mean the number of a patient or of a row."""
MOST_CLASSES = 20
FEW_NUMBERS = 10
"""Largest number of distinct values for which a numeric column may hold classes."""
MUCH_MISSING = 0.2
_UNIT = re.compile(
    r"(?:[_ ](?P<word>percent|pct|%|cm|mm|ms|mv|ml|bpm|kg|years)|[\[(](?P<sign>[^\])]{1,12})[\])])$", re.IGNORECASE
)


SENTINELS = frozenset({-1, -8, -9, -88, -99, -888, -999, -8888, -9999, 88, 99, 888, 999, 8888, 9999, 99999, 999999})
"""Numbers that tables use for "not measured"."""
FAR, ABOVE = 0.5, 1.2
"""A positive sentinel exceeds all other numbers by more than `FAR` of their range, and `ABOVE` times the largest."""

_NOTE = re.compile(r"(?<!\s)\s*(\([^()]*\)|\[[^\[\]]*\])$")
_LIKE_NUMBER = re.compile(
    r"(?:[<>=~\u2264\u2265\u00b1]{1,2}|ca\.?)?\s*[-+]?\d[\d.,']*\s*(?:%|[^\W\d_]{1,8}(?:/[^\W\d_]{1,4})?)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ColumnProfile:
    """Summary of one column.

    Attributes:
        name: Name of the column.
        filled: Number of non-empty cells.
        rows: Number of cells.
        values: Distinct values, sorted, as text.
        numbers: Whether all values are numbers.
    """

    name: str
    filled: int
    rows: int
    values: tuple[str, ...]
    numbers: bool

    @property
    def whole(self) -> bool:
        """Return whether all values are integers."""
        return self.numbers and all(re.fullmatch(r"-?[0-9]+", value) for value in self.values)

    @property
    def looks_like_ids(self) -> bool:
        """Return whether nearly every cell is unique and the values are not measurements."""
        many = self.filled > FEW_NUMBERS and len(self.values) > 0.9 * self.filled
        return many and (self.whole or not self.numbers)

    @property
    def mostly_numbers(self) -> bool:
        """Return whether these texts are measurements, at least half of them as numbers or like `<15`, `50,5 %` or `80 ms`."""
        count = sum(_LIKE_NUMBER.fullmatch(value) is not None for value in self.values)
        return not self.numbers and count > FEW_NUMBERS and 2 * count >= len(self.values)

    @property
    def kind(self) -> str:
        """Return the likely kind of task, "" if there is none, or "?" if the values are ambiguous."""
        count = len(self.values)
        if count < 2:
            return ""
        if count == 2:
            return TWO_CLASSES
        if self.mostly_numbers:
            return NUMBER
        if self.numbers and count > FEW_NUMBERS:
            return "" if self.looks_like_ids and not self.unit else NUMBER
        if self.numbers:
            return CLASSES if self.whole and count <= 3 else "?"
        return CLASSES if count <= MOST_CLASSES and not self.looks_like_ids else ""

    @property
    def unit(self) -> str:
        """Return the unit stated in the column name, or ""."""
        match = _UNIT.search(self.name)
        word = (match["word"] or match["sign"]).lower() if match else ""
        return {"percent": "%", "pct": "%"}.get(word, word)

    def shown(self) -> str:
        """Return a short list of the values."""
        if self.numbers and len(self.values) > 3:
            numbers = sorted(map(float, self.values))
            return f"{numbers[0]:g} to {numbers[-1]:g}"
        more = f" and {len(self.values) - 4} more" if len(self.values) > 4 else ""
        return ", ".join(value[:30] for value in self.values[:4]) + more

    def doubts(self) -> list[str]:
        """Return one sentence for each defect of the column as a label."""
        empty = self.rows - self.filled
        said = [f"{empty} of {self.rows} cells are empty"] if empty > MUCH_MISSING * self.rows else []
        if self.filled and len(self.values) == 1:
            said.append(f"every cell is {self.values[0]!r:.40}, so there is nothing to learn")
        if self.looks_like_ids and not (self.numbers and self.unit):
            said.append("nearly every cell has a different value: ids?")
        return said


def profile(column: pd.Series) -> ColumnProfile:
    """Summarise a text column."""
    filled = column[column != ""]
    values = sorted(set(filled))
    numbers = bool(values) and pd.to_numeric(pd.Series(values), errors="coerce").notna().all()
    if numbers:
        values.sort(key=float)
    return ColumnProfile(str(column.name), len(filled), len(column), tuple(values), bool(numbers))


def sentinels(column: pd.Series) -> dict[str, int]:
    """Return the numbers that may mean "not measured", each as written with its number of cells.

    These are `SENTINELS` that stand apart: negative ones where no other number is negative, and positive ones far above
    all others (`FAR`, `ABOVE`).
    """
    counts = column[column != ""].value_counts()
    numbers = pd.to_numeric(pd.Series(counts.index, index=counts.index), errors="coerce").dropna()
    rest = numbers[~numbers.isin(SENTINELS)]
    if rest.empty:
        return {}
    low, high = float(rest.min()), float(rest.max())
    apart = numbers.isin(SENTINELS) & (
        ((numbers < 0) & (low >= 0)) | (numbers > max(high + FAR * (high - low), ABOVE * high))
    )
    return {str(cell): int(counts[cell]) for cell in sorted(numbers.index[apart], key=float)}


def role_column(role: str, table: pd.DataFrame, taken: Collection[str]) -> str | None:
    """Return the column whose name, with or without a note in brackets at its end, matches a role; or None."""
    names = [name for name in reversed(list(table)) if name not in taken]
    by_name = {_plain(_NOTE.sub("", name)): name for name in names} | {_plain(name): name for name in names}
    return next((by_name[name] for name in NAMES[role] if name in by_name), None)


def bare_numbers(table: pd.DataFrame) -> list[str]:
    """Return columns whose name, such as `N.º`, does not say whether they number patients or rows, with their values.

    Values that occur twice number no rows, and 1 to n, one each, most likely do.
    """
    found = []
    for name in table:
        if _plain(str(name)) in BARE_NUMBERS:
            cells = table[name][table[name] != ""]
            counted = "1, 2, 3 ... like rows" if list(cells) == [str(1 + place) for place in range(len(cells))] else ""
            found.append(f"{name!r} ({counted or f'{cells.nunique()} different values in {len(cells)} rows'})")
    return found


def quoted(name: str) -> str:
    """Return the name of a column for a list, in quotation marks if it has a comma."""
    return repr(name) if "," in name else name


def slug(column: str) -> str:
    """Convert a column name to a task name of lower-case letters, digits and underscores."""
    text = re.sub(r"[^a-z0-9]+", "_", column.lower()).strip("_")[:60]
    return text if re.match(r"[a-z]", text) else f"label_{text}".rstrip("_")[:60]


def sex_of(cells: Collection[str]) -> dict[str, str]:
    r"""Return F or M for each distinct cell whose meaning is clear from it and the other cells.

    >>> sex_of(["w", "m\u00e4nnlich"]), sex_of(["H", "M"]), sex_of(["H", "F"])
    ({'w': 'F', 'm\xe4nnlich': 'M'}, {}, {'H': 'M', 'F': 'F'})
    """
    plain = {cell: _plain(cell) for cell in cells}
    there = set(plain.values())
    doubtful = {"m"} if _AMBIGUOUS & there else set()
    meaning = SEXES | (dict.fromkeys(_AMBIGUOUS, "M") if "f" in there and "m" not in there else {})
    return {cell: meaning[text] for cell, text in plain.items() if text in meaning and text not in doubtful}


def split_of(cell: str) -> str:
    """Return the split that a cell names; empty if it names none."""
    return SPLITS.get(_plain(cell), "")


def second_header(table: pd.DataFrame) -> str | None:
    """Return a column of numbers whose first cell is text, if no filled cell of the first row is a number; else None."""
    if len(table) < 3:
        return None
    first = table.iloc[0]
    if any(_is_number(cell) for cell in first if cell):
        return None
    for name in table:
        if first[name] and table[name].iloc[1:20].map(_is_number).all():
            rest = table[name].iloc[1:]
            if pd.to_numeric(rest[rest != ""], errors="coerce").notna().all():
                return str(name)
    return None


def _is_number(cell: str) -> bool:
    return bool(cell) and pd.notna(pd.to_numeric(cell, errors="coerce"))


def _plain(name: str) -> str:
    """Return a text in lower case without accents, other characters than letters and digits as `_`."""
    letters = unicodedata.normalize("NFKD", name.casefold())
    return re.sub(r"[^a-z0-9]+", "_", "".join(one for one in letters if not unicodedata.combining(one))).strip("_")
