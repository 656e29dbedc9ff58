"""Key of stored embeddings: everything except the recording that may change a vector."""

from types import ModuleType
from typing import Any

from cardiobench.core.versions import component_version
from cardiobench.data import catalog
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.media import dicom, ecg, ecg_hdf5, ecg_npy, ecg_wfdb, nifti, overlays, still, video
from cardiobench.models import signal
from cardiobench.models.base import LoadedModel, sampling_rate

READERS: dict[str, tuple[ModuleType, ...]] = {
    "video": (video, dicom, nifti, still),
    "image": (still, dicom, nifti),
    "ecg": (ecg, ecg_wfdb, ecg_hdf5, ecg_npy, signal),
}
"""Media column -> modules that read its formats and resample recordings for the encoder."""


def embedding_key(model: LoadedModel, source: OpenDataset) -> dict[str, Any]:
    """Return everything that may change the embeddings of a dataset by a model.

    Components of this package count by their versions, the user's own by their code and the values that they hold, and
    model files by their content, so a commit without a new version changes nothing. Versions of libraries do not count.
    A local model is its content, so it is not encoded again under another name, in another folder or file.
    """
    name = source.spec.name
    if model.vectors:
        return {"model": model.name, **model.vectors.key(name), "dataset": name, "dtype": model.dtype_name}
    weights: dict[str, str] | list[str] = dict(model.weight_files)
    if model.local and len(weights) == 1:
        weights = list(model.weight_files.values())
    return {
        **({"local": True} if model.local else {"model": model.name}),
        "weights": weights or model.revision,
        "configuration": dict(model.configuration),
        "preprocessing": dict(model.preprocessing),
        "sampling_rate": sampling_rate(model.encoder),
        "adapter": [*model.custom, *(component_version(one) for one in model.code)],
        "readers": [component_version(one) for one in READERS[source.spec.media]],
        "dataset": name,
        "dataset_version": source.spec.version,
        **({} if catalog.is_own(name) else {"builder": component_version(catalog.builder(name))}),
        "dtype": model.dtype_name,
        **({"overlays": component_version(overlays)} if source.masked else {}),
    }
