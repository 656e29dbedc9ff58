"""Files of EchoPrime's bank of studies for tests of damage."""

from collections.abc import Callable
from pathlib import Path

from cardiobench.models.families.echoprime.files import read_retrieval
from cardiobench.models.files import given_files
from tests.faults.place import Place
from tests.models.families.echoprime.checkpoint import candidate_bank, section_weights


def candidates(name: str) -> Callable[[Path], Path]:
    """Return a function that writes EchoPrime's study bank and returns one of its files."""

    def make(folder: Path) -> Path:
        candidate_bank(folder)
        section_weights(folder / "MIL_weights.csv")
        return folder / name

    return make


def retrieval(path: Path) -> object:
    return read_retrieval(given_files("echonet/EchoPrime", path.parent))


MODEL_FILES = {
    "candidate labels, a pickle": Place(candidates("candidate_labels.pkl"), retrieval),
    "candidate embeddings": Place(candidates("candidate_embeddings_p1.pt"), retrieval),
    "candidate studies": Place(candidates("candidate_studies.csv"), retrieval, "text"),
    "section weights": Place(candidates("MIL_weights.csv"), retrieval, "text"),
}
