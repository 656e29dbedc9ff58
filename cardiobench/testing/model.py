"""Check a model: parts of one shape, independent vectors, and no side effects."""

import json
from dataclasses import replace
from typing import Any

import numpy as np

from cardiobench.data.media import Clip, Ecg
from cardiobench.models.base import Encoder, LoadedModel, TextEncoder, sampling_rate
from cardiobench.models.signal import at_rate
from cardiobench.testing.require import require

SENTENCES = ("severe aortic stenosis", "the left ventricular ejection fraction is 35 %", "a dog")


def check_model(model: "str | Encoder", **options: Any) -> LoadedModel:
    """Check a model.

    Args:
        model: Name for `--model`, or an encoder.
        options: Options of `cardiobench.models.load.load_model`, such as `weights` or `trust_remote_code`.

    Returns:
        Loaded model.

    Raises:
        AssertionError: A check failed; the message states the check and both values.
        BadModel: The model cannot be loaded completely, or lacks members of an encoder.
    """
    loaded = _load(model, **options)
    before = _random_states()
    check_facts(loaded)
    for modality in loaded.modalities:
        check_vectors(loaded, modality)
    if isinstance(loaded.encoder, TextEncoder):
        check_texts(loaded.encoder)
    require(_random_states() == before, f"{loaded.name} draws from the global random generators")
    return loaded


def _load(model: "str | Encoder", **options: Any) -> LoadedModel:
    import torch

    from cardiobench.models.custom import find_custom, loaded
    from cardiobench.models.load import load_model

    make = find_custom(model) if isinstance(model, str) else None
    if isinstance(model, str) and make is None:
        return load_model(model, **options)
    return loaded(make() if make else model, "given", "fp32", torch.device("cpu"))


def _random_states() -> tuple[bytes, bytes]:
    import torch

    return torch.random.get_rng_state().numpy().tobytes(), np.random.get_state()[1].tobytes()  # type: ignore[index]  # noqa: NPY002


def recordings(modality: str) -> list[Clip] | list[Ecg]:
    """Return reproducible clips of several sizes, or ECGs of ten and eight seconds with several rates."""
    rng = np.random.default_rng(3)
    if modality == "ecg":
        return [
            Ecg(rng.normal(size=(samples, 12)).astype(np.float32), fs)
            for samples, fs in ((1000, 100.0), (5000, 500.0), (3200, 400.0))
        ]
    clips = [rng.integers(0, 256, (*shape, 3), dtype=np.uint8) for shape in ((6, 50, 70), (1, 112, 112), (20, 61, 41))]
    return [Clip(frames, np.arange(len(frames)), len(frames), 30.0) for frames in clips]


def check_facts(loaded: LoadedModel) -> None:
    """Check the stamped facts: name, revision, modalities, JSON-compatible preprocessing, and a known pooling."""
    encoder = loaded.encoder
    require(
        isinstance(encoder, Encoder), f"{type(encoder).__name__} is not an encoder (cardiobench.models.base.Encoder)"
    )
    for key in ("name", "revision"):
        value = getattr(encoder, key)
        require(isinstance(value, str) and value, f"the {key} of {loaded.name} is {value!r}; expected a text")
    modalities = set(encoder.modalities)
    require(modalities and modalities <= {"echo", "ecg"}, f"{loaded.name} takes {modalities}; expected echo or ecg")
    require(encoder.pooling in ("mean", "mean_l2"), f"{loaded.name} has pooling {encoder.pooling!r}")
    json.dumps(dict(loaded.preprocessing))
    require(encoder.sampling is not None or "echo" not in modalities, f"{loaded.name} takes clips and has no sampling")


def check_vectors(loaded: LoadedModel, modality: str) -> None:
    """Check shapes, dtype, reproducibility and batch independence of vectors, and that inputs stay unchanged."""
    import torch

    encoder, name = loaded.encoder, loaded.name
    given = [_sampled(one, encoder) for one in recordings(modality)]
    copies = [_array(one).copy() for one in given]
    parts = [encoder.transform(one) for one in given]
    shapes = [tuple(part.shape[1:]) for part in parts]
    require(
        len(set(shapes)) == 1, f"{name}: parts of recordings have shapes {shapes}; expected one: cut, pad or resize"
    )
    require(
        all(len(part) for part in parts), f"{name}: a recording gives {min(map(len, parts))} parts; expected 1 or more"
    )
    with torch.inference_mode():
        vectors = encoder.encode(torch.cat(parts))
        alone = [encoder.encode(part) for part in parts]
        again = encoder.encode(torch.cat(parts))
    dim = encoder.dim or vectors.shape[-1]
    expected = (sum(map(len, parts)), dim)
    require(tuple(vectors.shape) == expected, f"{name}: vectors {tuple(vectors.shape)}; expected {expected}")
    require(vectors.dtype == torch.float32, f"{name}: vectors are {vectors.dtype}; expected float32")
    require(bool(torch.isfinite(vectors).all()), f"{name}: vectors are not finite")
    require(torch.equal(vectors, again), f"{name}: encoding the same parts twice gives two results")
    torch.testing.assert_close(
        torch.cat(alone), vectors, rtol=1e-5, atol=1e-5, msg=lambda text: f"{name}: batch 1 and batch N differ. {text}"
    )
    repeated = [encoder.transform(one) for one in given]
    require(all(map(torch.equal, parts, repeated)), f"{name}: transform of one recording twice gives two results")
    unchanged = [np.array_equal(_array(one), copy) for one, copy in zip(given, copies, strict=True)]
    require(all(unchanged), f"{name}: transform modifies its input recording")


def _sampled(recording: Clip | Ecg, encoder: Encoder) -> Clip | Ecg:
    """Return a recording as in a run: an ECG at the encoder's rate, or a clip with at most the requested frames."""
    if isinstance(recording, Ecg):
        return at_rate(recording, sampling_rate(encoder))
    count = encoder.sampling.count if encoder.sampling else None
    if count is None:
        return recording
    return replace(recording, frames=recording.frames[:count], indices=recording.indices[:count])


def _array(recording: Clip | Ecg) -> np.ndarray:
    return recording.signal if isinstance(recording, Ecg) else recording.frames


def check_texts(encoder: TextEncoder) -> None:
    """Check `encode_text`: unit length, batch independence and a positive temperature."""
    import torch

    with torch.inference_mode():
        texts = encoder.encode_text(SENTENCES)
        alone = torch.cat([encoder.encode_text([text]) for text in SENTENCES])
    require(texts.shape[0] == len(SENTENCES) and texts.dtype == torch.float32, f"{encoder.name}: texts {texts.shape}")
    torch.testing.assert_close(texts.norm(dim=1), torch.ones(len(SENTENCES)), rtol=0, atol=1e-4)
    torch.testing.assert_close(alone, texts, rtol=0, atol=1e-5)
    require(float(encoder.logit_scale) > 0, f"{encoder.name} has logit_scale {encoder.logit_scale}; expected above 0")
