"""Section weights and candidate bank of EchoPrime, read from the user's download."""

import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from cardiobench.core.errors import BadModel
from cardiobench.models.families.echoprime.network import WIDTH
from cardiobench.models.families.echoprime.retrieval import PHENOTYPES, SECTION_OF, VIEWS, CandidateBank, SectionWeights
from cardiobench.models.files import ModelFiles, first_line
from cardiobench.models.weights import DAMAGED

SECTIONS = "MIL_weights.csv"
STUDIES = "candidate_studies.csv"
EMBEDDINGS = ("candidate_embeddings_p1.pt", "candidate_embeddings_p2.pt")
LABELS = "candidate_labels.pkl"
RETRIEVAL = (SECTIONS, STUDIES, *EMBEDDINGS, LABELS)

# NumPy constructors of numbers and arrays, the only names that may be imported from a pickle.
SAFE = {(f"numpy.{core}.multiarray", name) for core in ("core", "_core") for name in ("_reconstruct", "scalar")} | {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}


def read_retrieval(source: ModelFiles) -> tuple[SectionWeights, CandidateBank]:
    """Read the section weights and the candidate bank of an EchoPrime download.

    Raises:
        BadModel: A file is missing, damaged, or does not match the others.
    """
    paths = {name: source.weights((name,))[0] for name in RETRIEVAL}
    studies = _studies(paths[STUDIES])
    embeddings = torch.cat([_embeddings(paths[name]) for name in EMBEDDINGS])
    if len(studies) != len(embeddings):
        raise BadModel(
            f"{paths[STUDIES]} lists {len(studies)} studies, but {' and '.join(EMBEDDINGS)} contain {len(embeddings)}. "
            f"They belong to different releases: download them again."
        )
    return read_section_weights(paths[SECTIONS]), CandidateBank(embeddings, read_labels(paths[LABELS], studies))


def read_section_weights(path: Path) -> SectionWeights:
    """Read `MIL_weights.csv` with a column Section and one column per view.

    Raises:
        BadModel: A section or view of EchoPrime is missing, or a weight is not a number.
    """
    table = _table(path)
    missing = [name for name in ("Section", *VIEWS) if name not in table.columns]
    if not missing:
        missing = [section for section in PHENOTYPES if section not in set(table["Section"])]
    if missing:
        raise BadModel(f"{path} lacks {', '.join(missing)}. Take assets/{SECTIONS} from EchoPrime's repository.")
    try:
        values = table[list(VIEWS)].to_numpy(dtype=np.float64)
    except ValueError as error:
        raise BadModel(f"{path} contains a weight that is not a number ({error}). Download it again.") from error
    if not np.isfinite(values).all():
        raise BadModel(f"{path} contains weights that are empty or not finite. Download it again.")
    return SectionWeights(tuple(table["Section"]), values)


def read_labels(path: Path, studies: list[str]) -> dict[str, np.ndarray]:
    """Read `candidate_labels.pkl` (phenotype -> study -> number) as arrays (studies,); NaN for a missing study.

    Raises:
        BadModel: The pickle contains values other than dictionaries, texts and numbers, or lacks a phenotype.
    """
    content = _plain_pickle(path)
    missing = [name for name in SECTION_OF if not isinstance(content.get(name), Mapping)]
    if missing:
        raise BadModel(f"{path} lacks labels of {', '.join(missing)}. Download it again.")
    try:
        known = {name: {str(study): float(value) for study, value in content[name].items()} for name in SECTION_OF}
    except (TypeError, ValueError, OverflowError) as error:
        raise BadModel(f"{path} contains a label that is not a number ({error}). Download it again.") from error
    return {
        name: np.array([labels.get(study, np.nan) for study in studies], dtype=np.float32)
        for name, labels in known.items()
    }


def _table(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise BadModel(f"{path} is not a CSV table ({first_line(error)}). Download it again.") from error


def _studies(path: Path) -> list[str]:
    table = _table(path)
    if "Study" not in table.columns:
        raise BadModel(
            f"{path} has the columns {', '.join(map(str, table.columns))}; expected Study. Download it again."
        )
    return [str(study) for study in table["Study"]]


def _embeddings(path: Path) -> torch.Tensor:
    """Read one half of the bank, memory-mapped."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except pickle.UnpicklingError as error:
        raise BadModel(
            f"{path} contains more than a tensor and could run code when read: {first_line(error)}"
        ) from error
    except DAMAGED as error:
        raise BadModel(
            f"{path} is truncated or not a PyTorch file ({first_line(error)}). Download it again."
        ) from error
    if not isinstance(content, torch.Tensor) or content.ndim != 2 or content.shape[1] != WIDTH:
        shape = tuple(getattr(content, "shape", ()))
        raise BadModel(f"{path} contains a {type(content).__name__} {shape}; expected a tensor (candidates, {WIDTH}).")
    if not torch.isfinite(content).all():
        raise BadModel(f"{path} contains numbers that are not finite. Download it again.")
    return content.float()


def _plain_pickle(path: Path) -> dict:
    try:
        with path.open("rb") as file:
            content = _Plain(file).load()
    except _Unsafe as error:
        raise BadModel(
            f"{path} could run code when read: {error}. If you trust it, write it again as plain dictionaries: "
            f"phenotype -> study -> number."
        ) from error
    except (pickle.UnpicklingError, *DAMAGED) as error:
        raise BadModel(f"{path} is truncated or not a pickle ({first_line(error)}). Download it again.") from error
    if not isinstance(content, dict):
        raise BadModel(f"{path} contains a {type(content).__name__}; expected a dictionary. Download it again.")
    return content


class _Unsafe(pickle.UnpicklingError):
    """Error for a pickle that imports a name."""


class _Plain(pickle.Unpickler):
    """Unpickler of dictionaries, lists, texts and numbers; names that could run code are refused, not imported."""

    def find_class(self, module: str, name: str):
        if (module, name) not in SAFE:
            raise _Unsafe(f"it asks for {module}.{name}")
        return super().find_class(module, name)
