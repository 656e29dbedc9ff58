"""Test disturbed recordings: decoded once for all disturbances, and not encoded again if only the order of frames changes."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.console import Console
from cardiobench.data import catalog, open_dataset
from cardiobench.models.load import load_model
from cardiobench.protocols.analysis import Perturbation
from cardiobench.runner.context import RunContext, RunSummary
from cardiobench.runner.encode import CachedDataset, PerturbedDataset, encode_missing
from cardiobench.runner.plan import plan_dataset


class Counted:
    """Model that counts the parts that it encodes."""

    def __init__(self, encoder):
        self.encoder, self.parts = encoder, 0

    def __getattr__(self, name):
        return getattr(self.encoder, name)

    def encode(self, parts):
        self.parts += len(parts)
        return self.encoder.encode(parts)


@pytest.fixture
def context(tmp_path):
    from accelerate import Accelerator

    config = RunConfig(
        models=("cardiobench/random-vit",), output_dir=tmp_path / "out", cache_dir=tmp_path / "cache", workers=0
    )
    return RunContext(config, Accelerator(cpu=True), RunSummary(), Console(main=False))


def reverse(count, severity, rng):
    return np.arange(count)[::-1]


def rotate(count, severity, rng):
    return np.roll(np.arange(count), int(severity))


def in_order(name, severity, order):
    def apply(clip, severity, rng):
        return replace(clip, frames=clip.frames[order(len(clip.frames), severity, rng)])

    return Perturbation(name, severity, apply, order=order)


def brighten(level):
    def apply(clip, severity, rng):
        return replace(clip, frames=np.clip(clip.frames.astype(int) + int(severity), 0, 255).astype(np.uint8))

    return Perturbation("brighten", level, apply)


@pytest.mark.slow
def test_another_order_of_frames_gives_the_stored_vectors_in_that_order(context, monkeypatch):
    task, source = catalog.task("phantom_echo/ef"), open_dataset("phantom_echo")
    model = load_model("cardiobench/random-vit")
    encoder = Counted(model.encoder)
    model = replace(model, encoder=encoder)
    clean = plan_dataset(model, source, [task], context.config)
    lines = source.task_rows(task)
    few = lines[lines["split"] == "test"].index[:2].to_numpy()
    clean = SimpleNamespace(dataset=source, store=clean.store, to_encode=few)
    encode_missing(model, {None: clean}, context)
    assert encoder.parts == 2 * 16 + 1, "one part is encoded again to count operations"

    read = []
    monkeypatch.setattr(type(source), "recording", _counted(type(source).recording, read))
    changes = [in_order("reverse", 1, reverse), in_order("rotate", 3, rotate), *(brighten(level) for level in (5, 50))]
    plans = {}
    for change in changes:
        store = plan_dataset(model, source, [task], context.config, change).store
        plans[change] = SimpleNamespace(dataset=source, store=store, to_encode=few)
    encode_missing(model, plans, context, clean)
    assert encoder.parts == 2 * 16 + 2 * 2 * 16 + 2, "brighter frames are encoded; the others only change the order"
    assert read == few.tolist(), "each recording is decoded once for all disturbances"

    ids, stamps = source.frame["id"].iloc[few], source.frame["fingerprint"].iloc[few]
    for change, plan in plans.items():
        stored = plan.store.load(ids, stamps)
        own = PerturbedDataset(CachedDataset(source), change, context.config.seed)
        for place, number in enumerate(few):
            seen = encoder.transform(own.recording(number, encoder.sampling))
            np.testing.assert_allclose(stored.parts(place), encoder.encode(seen).numpy(), atol=1e-5)


def _counted(recording, read):
    def counted(source, number, sampling=None):
        read.append(int(number))
        return recording(source, number, sampling)

    return counted
