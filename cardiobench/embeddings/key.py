"""The key of stored embeddings: everything but the recording itself that can change a vector."""

import ast
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from cardiobench.core.source_digest import import_statements, source_digest, source_files
from cardiobench.data import builder, catalog, media
from cardiobench.data.dataset import OpenDataset
from cardiobench.models.base import LoadedModel, sampling_rate

# Library as it is imported -> its distributions, of which one is installed. Whatever decodes recordings or computes with
# their values; a library that is not here only reads tables, files or settings.
LIBRARIES = {
    "av": ("av",),
    "cv2": ("opencv-python-headless", "opencv-python"),
    "h5py": ("h5py",),
    "nibabel": ("nibabel",),
    "numpy": ("numpy",),
    "open_clip": ("open_clip_torch",),
    "PIL": ("pillow",),
    "pydicom": ("pydicom",),
    "pylibjpeg": ("pylibjpeg",),
    "safetensors": ("safetensors",),
    "scipy": ("scipy",),
    "timm": ("timm",),
    "tokenizers": ("tokenizers",),
    "torch": ("torch",),
    "torchvision": ("torchvision",),
    "transformers": ("transformers",),
}


def embedding_key(model: LoadedModel, source: OpenDataset) -> dict[str, Any]:
    """Return everything that can change the embeddings of a dataset by a model.

    The code is that of the adapter, its network and preprocessing, of the readers of recordings and of the dataset's
    builder, each with what it imports of this package; the libraries are those that this code imports. A model with
    files is known by their content: a commit that leaves them as they are changes nothing.
    """
    sources = (*model.code, *reader_sources(source.spec.name))
    files = source_files(*sources)
    return {
        "model": model.name,
        "weights": dict(model.weight_files) or model.revision,
        "configuration": dict(model.configuration),
        "preprocessing": dict(model.preprocessing),
        "sampling_rate": sampling_rate(model.encoder),
        "code": source_digest(*sources),
        "libraries": library_versions(files),
        "dataset": source.spec.name,
        "dataset_version": source.spec.version,
        "dtype": model.stored_as,
        **({"overlays": "masked"} if source.masked else {}),
    }


def reader_sources(dataset: str) -> tuple[type | Path, ...]:
    """Return the code that reads a dataset's recordings: its builder and all readers of media."""
    readers = sorted(Path(media.__file__).parent.glob("*.py"))
    return (catalog.builder(dataset), Path(builder.__file__), *readers)


def library_versions(files: Iterable[Path]) -> dict[str, str]:
    """Return the installed versions of the libraries of `LIBRARIES` that source files import, by import name."""
    imported = {name for file in files for name in _top_level_imports(file)}
    return {name: _version(name) for name in sorted(imported & LIBRARIES.keys())}


def _top_level_imports(file: Path) -> set[str]:
    names: set[str] = set()
    for node, _ in import_statements(file):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


@cache
def _version(library: str) -> str:
    for distribution in LIBRARIES[library]:
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return "absent"
