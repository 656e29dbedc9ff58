"""Trial of a model: transform and encode a generated recording, and compare the result with the expectations."""

import time
from collections.abc import Iterator

import torch

from cardiobench.core.errors import BadModel
from cardiobench.data import catalog
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.media.types import Clip, Ecg
from cardiobench.data.open import open_dataset
from cardiobench.embeddings.cost import count_work
from cardiobench.embeddings.extract import PartEncoder, prepare
from cardiobench.embeddings.finding import Finding
from cardiobench.embeddings.repeat import check_repeatable
from cardiobench.models.base import Encoder, LoadedModel, sampling_rate
from cardiobench.models.contract import encode, may_be_leads
from cardiobench.models.custom import networks_of
from cardiobench.models.signal import at_rate
from cardiobench.results.cost import short


def try_model(model: LoadedModel, device: torch.device) -> Iterator[Finding]:
    """Yield the findings of a trial on a phantom of each modality; the first failure ends a modality.

    Args:
        model: Loaded model, on the device.
        device: Device of the network.
    """
    for modality in model.modalities:
        try:
            yield from _try(model, open_dataset(catalog.generated_dataset(modality)), device)
        except BadModel as error:
            yield Finding(f"{modality}: stopped", str(error), "no error", good=False)
    yield from _network_lines(model.encoder, device)


def _try(model: LoadedModel, dataset: OpenDataset, device: torch.device) -> Iterator[Finding]:
    encoder, modality = model.encoder, dataset.spec.modality
    yield _recording_line(encoder, dataset)
    started = time.perf_counter()
    parts = prepare(model, dataset, 0)
    prepared = time.perf_counter() - started
    tail, shapes = tuple(parts.shape[1:]), f"{tuple(parts.shape)} {_kind(parts)}"
    run = PartEncoder(model, device)
    try:
        with torch.inference_mode():
            raw = encode(encoder, parts.to(device))
    except BadModel:
        if may_be_leads(parts, encoder):
            expected = f"(1, {_axes(tuple(parts.shape))}): parts first, such as signal.T[None]"
            yield Finding(f"{modality}: transform", shapes, expected, good=False)
        raise
    yield Finding(f"{modality}: transform", shapes, "(P, ...): parts first, P >= 1; one shape for all recordings")
    other = tuple(prepare(model, dataset, 1).shape[1:])
    yield Finding(
        f"{modality}: transform of another recording", f"(P, {_axes(other)})", f"(P, {_axes(tail)})", good=other == tail
    )
    if other != tail:
        return
    dim = model.dim or raw.shape[-1]
    good = (raw.shape[-1] == dim and raw.dtype == torch.float32) or model.precision != "fp32"
    expected = f"({len(parts)}, {dim}) float32: one vector per part, or ({len(parts)}, tokens, {dim})"
    yield Finding(f"{modality}: encode", f"{tuple(raw.shape)} {_kind(raw)}", expected, good=good)
    bad = int((~torch.isfinite(raw)).sum())
    yield Finding(f"{modality}: values", "finite" if not bad else f"{bad} are NaN or infinite", "finite", good=not bad)
    yield _repeat_line(model, dataset, device)
    started = time.perf_counter()
    run(parts)
    seconds = time.perf_counter() - started
    yield Finding(
        f"{modality}: time per recording",
        f"{1e3 * prepared:.1f} ms to read and transform, {1e3 * seconds:.1f} ms to encode on {device.type}",
    )
    yield _work_line(encoder, parts.to(device), modality)


def _recording_line(encoder: Encoder, dataset: OpenDataset) -> Finding:
    recording = dataset.recording(0, encoder.sampling)
    what = f"{dataset.spec.modality}: recording"
    if isinstance(recording, Ecg):
        recording = at_rate(recording, sampling_rate(encoder))
        found = f"signal {recording.signal.shape} {recording.signal.dtype} at {recording.fs:g} Hz"
        return Finding(what, found, "(samples, 12) in mV; I, II, III, aVR, aVL, aVF, V1 to V6; at sampling_rate")
    assert isinstance(recording, Clip)
    return Finding(what, f"frames {recording.frames.shape} {recording.frames.dtype}", "(T, H, W, 3), RGB, 0 to 255")


def _repeat_line(model: LoadedModel, dataset: OpenDataset, device: torch.device) -> Finding:
    what, expected = f"{dataset.spec.modality}: the same again", "equal vectors, alone and in a batch"
    try:
        check_repeatable(model, dataset, (0, 1), device)
    except BadModel as error:
        return Finding(what, str(error), expected, good=False)
    return Finding(what, "equal", expected)


def _work_line(encoder: Encoder, parts: torch.Tensor, modality: str) -> Finding:
    what = f"{modality}: work"
    try:
        parameters, flops = count_work(lambda: encode(encoder, parts[:1]))
    except (RuntimeError, TypeError, NotImplementedError) as error:
        return Finding(what, f"cannot be counted: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
    return Finding(
        what, f"{short(sum(parameters.values()))} parameters, {short(flops * len(parts), 'FLOPs')} per recording"
    )


def _network_lines(encoder: Encoder, device: torch.device) -> Iterator[Finding]:
    """Yield the training mode and the device of the networks that an encoder holds."""
    networks = networks_of(encoder)
    if not networks:
        yield Finding("network", "no torch network is held in an attribute", "none is needed")
        return
    training = sum(module.training for network in networks for module in network.modules())
    found = "evaluation" if not training else f"{training} modules are in training mode"
    yield Finding("mode of the network", found, "evaluation: call eval()", good=not training)
    tensors = [one for network in networks for one in (*network.parameters(), *network.buffers())]
    places = sorted({one.device.type for one in tensors}) or [device.type]
    yield Finding("device of the network", ", ".join(places), device.type, good=places == [device.type])


def _kind(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _axes(shape: tuple[int, ...]) -> str:
    return ", ".join(map(str, shape))
