"""Sketch of the encoders of ONNX files."""

from pathlib import Path

from cardiobench.models.load import load_model
from tests.extensions.onnx_models.networks import make, saved
from tests.versions.case import Case
from tests.versions.models import components_of, ecg
from tests.versions.readers import clip


def of_files(folder: Path) -> tuple[list, set[str]]:
    """Return parts and vectors of networks for ECGs, frames and clips."""
    signal = saved(make(["n", 12, 1000], axis=1), folder / "ecg.onnx")
    image = saved(make(["n", 3, 24, 32], axis=1), folder / "image.onnx")
    video = saved(make(["n", 8, 24, 24, 1], axis=4), folder / "clip.onnx")
    frames = {"scale": 255, "mean": [100, 110, 120], "std": 50, "interpolation": "bicubic"}
    models = [
        load_model(str(signal), preprocessing={"fs": 100, "scale": "standardise"}),
        load_model(str(image), preprocessing={"layout": "NCHW", **frames}),
        load_model(str(video), preprocessing={"layout": "NTHWC", "colour": "grey", "fit": "crop"}),
    ]
    found = []
    for model, recording in zip(models, (ecg(), clip(), clip()), strict=True):
        parts = model.encoder.transform(recording)
        found += [parts.float().numpy()[..., ::3], model.encoder.encode(parts).numpy()]
    return found, set().union(*map(components_of, models))


CASES = {"model onnx": Case(of_files, ())}
