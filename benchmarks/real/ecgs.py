"""Networks on the bundled ECGs: classes of one's own, ONNX files, bundled vectors, and baselines."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.real.networks import NETWORKS, TASK
from benchmarks.real.rows import Row, evaluated
from benchmarks.real.sources import ALEXNET
from cardiobench.data import catalog
from cardiobench.extensions.random_twin import vectors

PROBES = ("probe", "knn")
BASELINES = ("cardiobench/ecg-morphology", "cardiobench/metadata")
FORMAT = {
    "fs": 204.8,
    "seconds": 10,
    "leads": ["II", "III", "V1", "V2", "V3", "V4", "V5", "V6"],
    "scale": "standardise",
}
"""Input of the ONNX files, (2048, 8). The repository states the shape. Of 40 combinations of rate, crop, leads, filter and
scale that were tried for each file, this one has the highest AUROC of the network's own answers on folds 1 to 7 among those
without a filter, which the command line cannot state; a band-pass of 0.5 to 40 Hz is slightly better."""
LAYOUTS = {"alexnet_1d_ptbxl": "leads_first", "alexnet_1d_ptbxl_k": "time_first"}
"""File without suffix -> its layout; that with `_k` was converted from Keras."""


def _on_sample(models: list[Any], protocols: tuple[str, ...], out: Path, **options: Any) -> list[Row]:
    return evaluated(models, TASK, protocols, out, catalog.task(TASK).classes, **options)


def network(name: str, clone: Path, out: Path) -> list[Row]:
    """Evaluate one of `NETWORKS` by its own head, a probe and nearest neighbours."""
    model = NETWORKS[name](clone)
    return _on_sample([model], ("native", *PROBES), out, seen_in_pretraining=model.source.seen)


def onnx_files(clone: Path, out: Path) -> list[Row]:
    """Evaluate the vectors of five numbers of the ONNX files by a probe and nearest neighbours."""
    rows = []
    for file in ALEXNET.files:
        ALEXNET.read(clone, file)
        path = clone / file
        settings = {**FORMAT, "layout": LAYOUTS[path.stem]}
        found = _on_sample(
            [str(path)], PROBES, out / path.stem, preprocessing=settings, seen_in_pretraining=ALEXNET.seen
        )
        rows += [replace(row, what=f"{ALEXNET.name}/{path.name}") for row in found]
    return rows


def package_and_baselines(out: Path) -> list[Row]:
    """Evaluate the bundled vectors of the openecg codec, trained and with random weights, and the baselines."""
    rows = _on_sample(list(BASELINES), PROBES, out / "baselines")
    for name, (model, variant) in vectors.MODELS.items():
        described = f"{model}-{variant}" if variant else model
        rows += _on_sample(
            [], PROBES, out / name, embeddings=vectors.read(name), model_name=described, seen_in_pretraining="none"
        )
    return rows
