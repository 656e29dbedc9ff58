"""Test training from scratch: leakage, repeatability, recovery after a kill, and refusals."""

import resource
from dataclasses import replace
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from cardiobench.core.errors import BadConfig, BadModel, DiskFull, NotApplicable
from cardiobench.data.media.types import Clip, Ecg
from cardiobench.embeddings.cost import count_work
from cardiobench.extensions.scratch.encoder import FrameInputs, SignalInputs
from cardiobench.extensions.scratch.protocol import Scratch
from cardiobench.extensions.scratch.recipes import RECIPES, Recipe, card_of
from cardiobench.extensions.scratch.training import ScratchTraining
from cardiobench.models.cards import card
from cardiobench.models.load import load_model
from cardiobench.protocols.base import TaskData
from cardiobench.protocols.training import loop
from cardiobench.protocols.training.identity import CHECKSUM, KEY, checksum_of
from cardiobench.protocols.training.loop import Schedule, train_network
from cardiobench.protocols.training.objective import TrainingObjective
from cardiobench.protocols.training.split import fit_and_held
from tests.protocols.conftest import BINARY, REGRESSION, task_data

SPLIT = ["train"] * 20 + ["validation"] * 10 + ["test"] * 10
QUICK = Scratch(network="small", epochs=3, seeds=1)
SMALL = SimpleNamespace(name=card_of("small"), trained_by="scratch")


def signals(seed=0):
    """Return 40 records of 5 s at 100 Hz; one lead oscillates in those of the positive class."""
    rng = np.random.default_rng(seed)
    positive = np.arange(40) % 2 == 1
    waves = 0.1 * rng.normal(size=(40, 500, 12))
    waves[positive, :, 6] += np.sin(np.arange(500) / 3)
    return waves.astype(np.float32), np.where(positive, "yes", "no")


def data_of(waves, labels, task=BINARY, split=SPLIT):
    return task_data(task, [wave.reshape(20, 300) for wave in waves], labels, split)


@pytest.fixture
def data():
    return data_of(*signals())


def weights(network):
    return {name: value.clone() for name, value in network.state_dict().items()}


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.slow
def test_training_learns_a_clear_signal(data):
    output = replace(QUICK, epochs=15).predict(data, SMALL, "")
    positive = data.labels[output.indices] == 1
    assert output.values[positive, 1].min() > output.values[~positive, 1].max()
    assert output.details["patients_fitted_on"] == 20 and output.details["epoch_chosen_by"] == 10
    network = RECIPES["small"].build(2, True).eval()
    sizes, flops = count_work(lambda: network(torch.zeros(1, 12, 250)))
    cost = output.cost
    assert (cost.parameters, cost.flops) == (sum(sizes.values()), 2 * flops), "5 s are two windows"
    assert (cost.width, cost.reason) == (300, "")


def test_learning_ignores_test_patients(data):
    waves, labels = signals()
    waves[30:], labels[30:] = 9.0, "yes"
    trained = [QUICK.prepare(one, SMALL).train(0)[0] for one in (data, data_of(waves, labels))]
    assert same(*map(weights, trained))


def test_validation_patients_only_choose_the_epoch(data):
    """Check that validation labels only affect the choice of the epoch, and never the weights after each epoch."""
    waves, labels = signals()
    labels[20:30] = np.where(labels[20:30] == "yes", "no", "yes")
    other, passed = data_of(waves, labels), []
    for one in (data, other):
        prepared, states = QUICK.prepare(one, SMALL), []
        real = prepared.predict
        prepared.predict = lambda network, rows, real=real, states=states: (
            states.append(weights(network)),
            real(network, rows),
        )[1]
        prepared.train(0)
        passed.append(states)
    assert len(passed[0]) == 3 and all(map(same, *passed))


@pytest.mark.slow
def test_seed_determines_the_result(data):
    first, again, other = (QUICK.prepare(data, SMALL).train(seed)[0] for seed in (0, 0, 1))
    assert same(weights(first), weights(again)) and not same(weights(first), weights(other))


@pytest.mark.gpu
@pytest.mark.parametrize("killed_after", [pytest.param(1, marks=pytest.mark.slow), 2])
@pytest.mark.parametrize("network", ["small", "s4"])
def test_kill_after_any_epoch_resumes_to_the_same_weights(data, tmp_path, monkeypatch, killed_after, network):
    """Train with dropout, whose draws depend on the epoch and not on the process."""
    if network == "s4":
        from cardiobench.models.blocks.s4 import S4Classifier

        tiny = Recipe("ecg", 250, 3, 8, 8, lambda outputs, time: S4Classifier(outputs, width=8, layers=1))
        monkeypatch.setitem(RECIPES, "small", tiny)
    whole = QUICK.prepare(data, SMALL).train(0)[0]
    done = []

    def kill(*arguments, **named):
        save(*arguments, **named)
        done.append(0)
        if len(done) == killed_after:
            raise KeyboardInterrupt

    save = loop._save
    kept = replace(data, work=tmp_path)
    monkeypatch.setattr(loop, "_save", kill)
    with pytest.raises(KeyboardInterrupt):
        QUICK.prepare(kept, SMALL).train(0)
    monkeypatch.setattr(loop, "_save", save)
    torch.manual_seed(123)
    assert same(weights(QUICK.prepare(kept, SMALL).train(0)[0]), weights(whole))
    monkeypatch.setattr(loop, "_one_epoch", None)  # A finished training is read, not repeated.
    assert same(weights(QUICK.prepare(kept, SMALL).train(0)[0]), weights(whole))


class Attack:
    """A pickle that would run code."""

    def __reduce__(self):
        return exec, ("raise SystemExit",)


WEIGHTLESS = {"epoch": 3, "best_epoch": 1, "quality": 0.5, "network": {}}


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: b"",
        lambda content: saved_bytes({"epoch": 3, "best": Attack()}),
        lambda content: saved_bytes([1, 2]),
        lambda content: saved_bytes({"epoch": 1}),
        lambda content: saved_bytes({**WEIGHTLESS, "best": {}}),
        lambda content: saved_bytes({**WEIGHTLESS, "best": {"stem.weight": torch.zeros(3)}}),
    ],
    ids=["truncated", "empty", "pickle with code", "list", "parts missing", "no weights", "other weights"],
)
def test_damaged_or_foreign_checkpoint_is_named(data, tmp_path, damage):
    training = replace(QUICK, epochs=1).prepare(replace(data, work=tmp_path), SMALL)
    training.train(0)
    (path,) = tmp_path.glob("*.pt")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(
        BadModel, match=f"{path.name} is not a checkpoint of this training run .* Delete it and run the same command"
    ):
        training.train(0)


def flipped(path):
    """Flip one bit in the middle of the largest stored tensor."""
    state = torch.load(path, weights_only=True)
    longest = max(state["best"].values(), key=torch.Tensor.numel)
    raw = longest.reshape(-1).view(torch.uint8).numpy().tobytes()
    content, place = bytearray(path.read_bytes()), path.read_bytes().index(raw) + len(raw) // 2
    content[place] ^= 1
    path.write_bytes(content)


def with_nan(path):
    """Set one weight to NaN and state the new checksum."""
    state = torch.load(path, weights_only=True)
    next(iter(state["best"].values())).view(-1)[0] = torch.nan
    kept = {name: value for name, value in state.items() if name not in (KEY, CHECKSUM)}
    path.write_bytes(saved_bytes({**state, CHECKSUM: checksum_of(kept)}))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (flipped, "its content has the checksum"),
        (with_nan, "its weights .* are not finite"),
        (lambda path: (path.parent / "cpu-1.pt").replace(path), "its key is .*/cpu-1.pt; expected .*/cpu-0.pt"),
    ],
    ids=["flipped bit", "NaN", "another seed"],
)
def test_checkpoint_with_another_content_is_refused(data, tmp_path, change, reason):
    training = replace(QUICK, epochs=1).prepare(replace(data, work=tmp_path), SMALL)
    for seed in (0, 1):
        training.train(seed)
    change(tmp_path / "cpu-0.pt")
    with pytest.raises(BadModel, match=rf"cpu-0\.pt is not a checkpoint of this training run \({reason}"):
        training.train(0)


def test_full_disk_leaves_no_partial_checkpoint(data, tmp_path):
    training = replace(QUICK, epochs=1).prepare(replace(data, work=tmp_path), SMALL)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
    try:
        with pytest.raises(DiskFull, match=r"cpu-0\.pt cannot be written"):
            training.train(0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())


def saved_bytes(content):
    torch.save(content, file := BytesIO())
    return file.getvalue()


def test_gradients_of_small_batches_add_up(data, monkeypatch):
    found = []
    for micro in (20, 3):
        monkeypatch.setitem(RECIPES, "small", replace(RECIPES["small"], micro_batch=micro))
        found.append(replace(QUICK, epochs=1).prepare(data, SMALL).train(0)[0].state_dict())
    for name in found[0]:
        torch.testing.assert_close(found[0][name], found[1][name], atol=1e-4, rtol=1e-3)


def test_incomplete_batch_is_dropped_unless_it_is_the_only_one(data):
    seen = []

    def inputs(rows, generator):
        seen.append(len(rows))
        return torch.zeros(len(rows), 1)

    def predict(network, rows):
        return np.tile([0.5, 0.5], (len(rows), 1))

    for size in (8, 64):
        network, fit, held = torch.nn.Linear(1, 2), data.indices("train"), data.indices("validation")
        groups = [{"params": network.parameters(), "lr": 1e-3}]
        schedule = Schedule(1, size, size, 0)
        train_network(network, groups, TrainingObjective(data, fit), fit, held, inputs, predict, schedule)
    assert seen == [8, 8, 20]


def test_prediction_is_mean_of_successive_windows(data):
    prepared = QUICK.prepare(data, SMALL)
    network = prepared.train(0)[0]
    (answer,) = prepared.predict(network, np.array([35]))
    wave = torch.from_numpy(data.embeddings.parts(35).copy()).reshape(2, 250, 12).transpose(1, 2)
    with torch.no_grad():
        wanted = torch.stack([network(one[None])[0].double().softmax(0) for one in wave]).mean(0)
    np.testing.assert_allclose(answer, wanted.numpy(), atol=1e-6)


def test_regression_predicts_in_its_unit():
    waves, _ = signals()
    labels = 55 + 10 * np.random.default_rng(1).normal(size=40)
    output = QUICK.predict(data_of(waves, labels, REGRESSION), SMALL, "")
    assert output.values.shape == (10,) and np.abs(output.values - 55).max() < 40


def test_training_patients_replace_validation(data):
    split = ["train"] * 30 + ["test"] * 10
    waves, labels = signals()
    fit, held = fit_and_held(data_of(waves, labels, split=split), 0, "x")
    assert (len(fit), len(held)) == (24, 6) and not set(fit) & set(held) and max(*fit, *held) < 30


@pytest.mark.parametrize("labels", [["no"] * 40, ["no"] * 20 + ["no", "yes"] * 10])
def test_one_class_to_learn_from_is_not_applicable(labels):
    with pytest.raises(NotApplicable, match="two classes"):
        QUICK.prepare(data_of(signals()[0], np.array(labels)), SMALL)


def test_validation_patients_of_one_class_cannot_choose():
    waves, labels = signals()
    labels[20:30] = "no"
    with pytest.raises(NotApplicable, match="one class"):
        QUICK.prepare(data_of(waves, labels), SMALL).train(0)


def test_trained_models_are_not_applicable():
    with pytest.raises(NotApplicable, match="already trained"):
        QUICK.check_encoder(SimpleNamespace(name="cardiobench/minirocket"), BINARY)


def test_networks_of_modalities_are_added_by_default():
    from cardiobench.data import catalog

    ecg, echo = catalog.task("ptb_xl_sample/cd"), catalog.task("camus/ef")
    assert Scratch().own_models([ecg], ()) == ("cardiobench/scratch-s4",)
    assert Scratch().own_models([ecg, echo], ()) == ("cardiobench/scratch-s4", "cardiobench/scratch-r2plus1d")
    assert Scratch(network="small").own_models([ecg, echo], ()) == ("cardiobench/scratch-small",)
    assert Scratch().own_models([ecg], ("cardiobench/scratch-small",)) == ()
    with pytest.raises(
        BadConfig, match=r"scratch\.network=s4 is .* ecg .* camus/ef .* echo .* among auto, r2plus1d, or"
    ):
        Scratch(network="s4").own_models([echo], ())


def test_signals_keep_millivolts_and_drop_nan():
    encoder = load_model("cardiobench/scratch-small").encoder
    assert isinstance(encoder, SignalInputs) and encoder.dim == 300
    signal = np.random.default_rng(0).normal(size=(260, 12)).astype(np.float32)
    signal[3, 4] = np.nan
    stored = encoder.encode(encoder.transform(Ecg(signal, 100))).reshape(-1, 12).numpy()
    np.testing.assert_array_equal(stored, np.nan_to_num(signal)[:250])
    short = encoder.transform(Ecg(signal[:10], 100))
    assert short.shape == (1, 25, 12) and not short[0, 10:].any()


def test_frames_are_integers_in_half_precision():
    encoder = FrameInputs(card("cardiobench/scratch-r2plus1d"))
    frames = np.random.default_rng(0).integers(0, 256, (3, 80, 90, 3), dtype=np.uint8)
    stored = encoder.encode(encoder.transform(Clip(frames, np.arange(3), 3)))
    assert stored.shape == (3, encoder.dim)
    torch.testing.assert_close(stored.half().float(), stored, atol=0, rtol=0)


@pytest.mark.parametrize("count", [1, 5, 20])
def test_clips_and_stills_are_learned(count):
    rng = np.random.default_rng(0)
    labels = np.where(np.arange(12) % 2, "yes", "no")
    frames = [rng.integers(0, 256, (count, 112 * 112)).astype(np.float32) for _ in labels]
    data: TaskData = task_data(BINARY, frames, labels, ["train"] * 6 + ["validation"] * 4 + ["test"] * 2)
    encoder = SimpleNamespace(name=card_of("r2plus1d"), trained_by="scratch")
    prepared = replace(QUICK, epochs=1).prepare(data, encoder)
    windows = prepared._windows(prepared._recording(0))
    assert windows.shape == (1, min(count, 1) if count == 1 else 16, 112 * 112)
    assert prepared.time == (count > 1)


def test_grey_values_reach_the_network_between_minus_one_and_one():
    training = SimpleNamespace(device="cpu", recipe=SimpleNamespace(modality="echo"))
    cut = np.stack([np.full((1, 2, 112, 112), grey) for grey in (0, 255)])
    assert [one.unique().tolist() for one in ScratchTraining._tensor(training, cut)] == [[-1.0], [1.0]]
