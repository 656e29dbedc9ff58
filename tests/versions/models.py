"""Sketches of every registered model with small random weights: vectors, texts and heads on fixed recordings."""

from pathlib import Path

import numpy as np
import pytest
import torch

from cardiobench.core.versions import component_version
from cardiobench.data.media.types import Ecg
from cardiobench.models.base import LoadedModel, NativeHeads, SpatialEncoder, TextEncoder
from cardiobench.models.cards import card, list_models
from cardiobench.models.custom import loaded
from cardiobench.models.load import NO_ADAPTER, load_model
from cardiobench.models.pooling import KEEP_TOKENS
from tests.acceptance.encoders import Thumbnails
from tests.models.checkpoints import CHECKPOINTS, change_card, smaller_networks
from tests.models.tiny import tiny_timm
from tests.versions.case import Case
from tests.versions.readers import clip, picture
from tests.versions.sketch import TOLERANCE

TEXTS = ("severe aortic stenosis", "ejection fraction is 35 %")
QUICK = ("sehunfromdaegu/ECG_JEPA",)


def ecg() -> Ecg:
    """Return ten seconds of beats in twelve leads at 500 Hz."""
    time = np.arange(5000) / 500
    beat = sum(
        h * np.exp(-((((time % 0.9) - c) / w) ** 2)) for c, w, h in ((0.2, 0.03, 0.1), (0.4, 0.01, 1), (0.7, 0.05, 0.3))
    )
    leads = beat[:, None] * np.linspace(-0.6, 1.2, 12) + 0.02 * np.sin(time[:, None] * np.arange(1, 13))
    return Ecg(leads.astype(np.float32), 500.0, {"age": 61.0, "sex": "F"})


def components_of(model: LoadedModel) -> set[str]:
    """Return the ids of all components of an encoder."""
    lines = [line for one in model.code for line in component_version(one).split(" < ")]
    return {line.rpartition(" ")[0] for line in lines}


def outputs(model: LoadedModel) -> list:
    """Return all outputs that a protocol may request from an encoder."""
    encoder, found = model.encoder, []
    recordings = [clip(facts={"age": 61.0, "sex": "F"}, fps=30.0)] if "echo" in model.modalities else []
    recordings += [ecg()] if "ecg" in model.modalities else []
    with torch.inference_mode():
        for recording in recordings:
            parts = encoder.transform(recording)
            vectors = encoder.encode(parts)
            found += [parts.float().numpy()[..., ::3], vectors.float().numpy()]
            if isinstance(encoder, NativeHeads):
                units = [vectors.float().numpy().reshape(-1, vectors.shape[-1])]
                found += [np.asarray(encoder.predict_native(target, units)) for target in encoder.native]
        if isinstance(encoder, TextEncoder):
            found.append(encoder.encode_text(list(TEXTS)).float().numpy())
        if "echo" in model.modalities and isinstance(encoder, SpatialEncoder):
            found.append(encoder.encode_tokens(encoder.transform(clip()))[..., ::4].float().numpy())
    return found


AMPLIFIED = {"AI4HealthUOL/ECG-CPC": 0.01, "cardiobench/scratch-r2plus1d": 0.001}
"""Networks whose random weights amplify the last digits, which depend on instruction sets."""


def registered(name: str) -> Case:
    """Return the case of a model, from a synthetic checkpoint if it has weights."""

    def make(folder: Path) -> tuple[list, set[str]]:
        with pytest.MonkeyPatch.context() as patch, smaller_networks():
            weights = None
            if name in CHECKPOINTS:
                change_card(patch, name)
                weights = CHECKPOINTS[name](folder)
            settings = [{}, {"variant": "prompts"}] if card(name).embedding.get("text") == "prompts" else [{}]
            settings += [{"variant": "queries", "pooling": KEEP_TOKENS}] if "queries" in card(name).variants else []
            models = [load_model(name, weights=weights, **setting) for setting in settings]
            found = [array for model in models for array in outputs(model)]
        return found, set().union(*map(components_of, models))

    slow = name in CHECKPOINTS and name not in QUICK
    return Case(make, (), slow=slow, tolerance=AMPLIFIED.get(name, TOLERANCE))


def from_timm(folder: Path) -> tuple[list, set[str]]:
    """Return a library model without a card."""
    model = load_model(str(tiny_timm(folder / "vit")))
    return outputs(model), components_of(model)


def own_encoder(folder: Path) -> tuple[list, set[str]]:
    """Encoder class of a user, whose code is not a component of this package."""
    model = loaded(Thumbnails(), "own", "fp32", torch.device("cpu"))
    parts = model.encoder.transform(clip())
    return [parts.numpy(), model.encoder.encode(parts).numpy(), model.encoder.dim], {"encoder base"}


def patches(folder: Path) -> tuple[list, set[str]]:
    """Return the patches of a clip instead of its frames."""
    model = load_model("cardiobench/random-vit", pooling=KEEP_TOKENS)
    return outputs(model), components_of(model)


def still_tokens(folder: Path) -> tuple[list, set[str]]:
    """Return what a network sees of a single frame, and the stored patches."""
    from cardiobench.embeddings.frame_tokens import Letterbox, prepare_still

    frame = picture(50, 80)
    parts = prepare_still(Thumbnails(), frame)
    return [parts.numpy(), Letterbox(50, 80).side], set()


CASES = {
    **{name: registered(name) for name in list_models() if card(name).adapter != NO_ADAPTER},
    "a model of timm": Case(from_timm, ()),
    "an encoder of a user's own": Case(own_encoder, ()),
    "patches": Case(patches, ()),
    "frame tokens": Case(still_tokens, ("frame tokens",)),
}
