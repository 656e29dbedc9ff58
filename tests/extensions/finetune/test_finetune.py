"""Test fine-tuning: trained parts and learning rates, leakage, repeatability, recovery after a kill, and refusals."""

from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save as to_bytes
from sklearn.metrics import roc_auc_score

from cardiobench.core.errors import BadModel, CardioBenchError, MissingExtra, NotApplicable
from cardiobench.data.media.types import Ecg
from cardiobench.extensions.finetune.adapt import groups_of
from cardiobench.extensions.finetune.inputs import PreparedRecordings
from cardiobench.extensions.finetune.protocol import Finetune
from cardiobench.extensions.finetune.recipe import MODES, FinetuneRecipe
from cardiobench.extensions.finetune.saved import FACTS, FinetunedEncoder
from cardiobench.models.load import load_model
from cardiobench.protocols.ensemble import EnsembleProtocol
from cardiobench.protocols.training import loop
from cardiobench.protocols.training.identity import CHECKSUM, checksum_of
from tests.extensions.finetune.conftest import Tiny, data_of, signals
from tests.protocols.conftest import BINARY, REGRESSION

QUICK = Finetune(epochs=3, seeds=1, rates=(3e-3,), batch_size=8, parts=2)


def weights(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def trained(recipe, data, encoder, seed=0, mode="full"):
    return recipe.prepare(data, encoder, mode).train(seed, recipe.rates[0])


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_fine_tuning_learns_a_clear_signal_and_keeps_the_model_unchanged(data, encoder, mode):
    before = weights(encoder.network)
    output = replace(QUICK, epochs=15, rates=(1e-2,)).predict(data, encoder, mode)
    assert roc_auc_score(data.labels[output.indices], output.values[:, 1]) > 0.9
    assert same(weights(encoder.network), before) and not encoder.network.training
    assert output.details["patients_fitted_on"] == 20 and output.details["chosen_by"] == 10
    assert not output.details.keys() & QUICK.get_params().keys(), "details and options have no common key"


def test_untrained_network_gives_the_stored_vectors(data, encoder):
    """Compare with the model's own pooling, with gradients and in both dropout modes."""
    for pooling in ("mean", "mean_l2"):
        encoder.pooling = pooling
        stored = data.embeddings.pooled(pooling)
        prepared = QUICK.prepare(replace(data, pooling=pooling), encoder)
        vectors = prepared.embed(prepared.network(0), np.arange(40))
        np.testing.assert_allclose(vectors.numpy(), stored, atol=1e-5)
    parts = torch.stack([prepared.inputs.parts(3)] * 2)
    assert prepared.network(0).embed(parts).requires_grad


@pytest.mark.parametrize(
    "mode", [pytest.param(one, marks=pytest.mark.slow) if one in ("full", "lora") else one for one in MODES]
)
def test_learning_ignores_test_patients(data, encoder, mode):
    waves, labels = signals()
    waves[30:], labels[30:] = 9.0, "yes"
    other = data_of(waves, labels, encoder)
    (one, details), (two, others) = (trained(QUICK, given, encoder, mode=mode) for given in (data, other))
    assert same(weights(one), weights(two)) and details == others


@pytest.mark.slow
def test_only_layers_of_the_mode_are_trained(data, encoder):
    def names(mode, **options):
        network = replace(QUICK, **options).prepare(data, encoder, mode).network(0)
        return {key.removeprefix("networks.0.") for key, one in network.named_parameters() if one.requires_grad}

    every = {key for key, _ in encoder.network.named_parameters() if not key.startswith("unused")}
    head = {"head.weight", "head.bias"}
    assert names("full") == every | head
    last = {key for key in every if key.startswith(("blocks.1.", "blocks.2.", "norm."))}
    assert names("last", blocks=2) == last | head
    adapted = names("lora") - head
    assert all("lora_" in key for key in adapted)
    layers = {key.split(".lora_")[0].removesuffix(".base_layer.out_proj") for key in adapted}
    assert layers == {f"blocks.{number}.{layer}" for number in range(3) for layer in ("attention", "linear")}


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        ("decay", {"stem": 0.5**4, "blocks.0": 0.5**3, "blocks.1": 0.5**2, "blocks.2": 0.5, "norm": 1.0}),
        ("steps", {"stem": 0.01, "blocks.0": 0.01, "blocks.1": 0.1, "blocks.2": 0.1, "norm": 0.1}),
        ("equal", dict.fromkeys(("stem", "blocks.0", "blocks.1", "blocks.2", "norm"), 1.0)),
    ],
)
def test_earlier_layers_learn_at_smaller_rates(data, encoder, how, wanted):
    recipe = replace(QUICK, layer_rates=how, layer_decay=0.5)
    prepared = recipe.prepare(data, encoder)
    network = prepared.network(0)
    rates = {
        id(one): group["lr"] for group in groups_of(network, prepared.structure, recipe, 2.0) for one in group["params"]
    }
    for key, one in network.named_parameters():
        if one.requires_grad:
            part = next((wanted[name] for name in wanted if key.startswith(f"networks.0.{name}.")), 1.0)
            assert rates[id(one)] == pytest.approx(2.0 * part), key


@pytest.mark.slow
def test_frozen_weights_keep_their_bits_under_lora(data, encoder):
    network, details = trained(QUICK, data, encoder, mode="lora")
    after = {key.replace("base_layer.", ""): one for key, one in network.networks[0].state_dict().items()}
    for key, one in encoder.network.state_dict().items():
        assert torch.equal(after[key], one), key
    moved = [one for key, one in network.named_parameters() if "lora_B" in key]
    assert all(one.abs().sum() > 0 for one in moved)
    assert 0 < details["cka"] < 1
    assert details["trained_parameters"] == sum(one.numel() for one in network.parameters() if one.requires_grad)


@pytest.mark.slow
def test_seed_determines_the_result(data, encoder):
    first, again, other = (weights(trained(QUICK, data, encoder, seed)[0]) for seed in (0, 0, 1))
    assert same(first, again) and not same(first, other)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["full", "lora"])
def test_training_is_independent_of_earlier_ones(data, encoder, mode):
    """Check that processes can share trainings, so that each may be the first or a later one in its process."""
    prepared = QUICK.prepare(data, encoder, mode)
    later = [weights(prepared.train(seed, 3e-3)[0]) for seed in (0, 1)][1]
    assert same(later, weights(trained(QUICK, data, encoder, 1, mode)[0]))


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["full", "lora"])
@pytest.mark.parametrize("killed_after", [1, 2])
def test_kill_after_any_epoch_resumes_to_the_same_weights(data, encoder, tmp_path, monkeypatch, killed_after, mode):
    """Train with dropout, whose draws depend on the epoch and not on the process."""
    whole, done, save = weights(trained(QUICK, data, encoder, mode=mode)[0]), [], loop._save

    def kill(*arguments, **named):
        save(*arguments, **named)
        done.append(0)
        if len(done) == killed_after:
            raise KeyboardInterrupt

    kept = replace(data, work=tmp_path)
    monkeypatch.setattr(loop, "_save", kill)
    with pytest.raises(KeyboardInterrupt):
        trained(QUICK, kept, encoder, mode=mode)
    monkeypatch.setattr(loop, "_save", save)
    torch.manual_seed(123)
    assert same(weights(trained(QUICK, kept, encoder, mode=mode)[0]), whole)
    monkeypatch.setattr(loop, "_one_epoch", None)  # A finished training is read, not repeated.
    assert same(weights(trained(QUICK, kept, encoder, mode=mode)[0]), whole)


def test_gradients_of_small_batches_add_up(data, encoder):
    for module in encoder.network.modules():
        module.p = 0.0  # Dropout draws for each small batch.
    found = [trained(replace(QUICK, epochs=1, micro_batch=micro), data, encoder)[0] for micro in (8, 3)]
    for one, other in zip(*(network.parameters() for network in found), strict=True):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_saved_weights_make_the_trained_model_again(data, encoder, tmp_path, mode):
    network, details = trained(QUICK, replace(data, work=tmp_path), encoder, mode=mode)
    (file,) = tmp_path.glob("*.safetensors")
    assert details["weights"].endswith(file.name)
    again = FinetunedEncoder(encoder, file)
    parts = again.transform(Ecg(signals()[0][3], 100.0))
    with torch.no_grad():
        torch.testing.assert_close(again.encode(parts), network.encode(parts), atol=0, rtol=0)
    assert not torch.equal(again.encode(parts), encoder.encode(parts))
    assert again.revision != encoder.revision and again.modalities == ("ecg",)
    with pytest.raises(BadModel, match=r"trained on lab/tiny @ \w+, not on"):
        FinetunedEncoder(Tiny(seed=1), file)
    flipped = bytearray(file.read_bytes())
    flipped[-3] ^= 1
    foreign = {"other.safetensors": to_bytes({"a": torch.ones(1)}), "cut.safetensors": file.read_bytes()[:-50]}
    foreign |= {"flipped.safetensors": bytes(flipped)}
    for name, content in foreign.items():
        (tmp_path / name).write_bytes(content)
    for name in (*foreign, "none.safetensors"):
        with pytest.raises(BadModel, match=f"{name} holds no weights that finetune trained"):
            FinetunedEncoder(encoder, tmp_path / name)


def with_nan(path, other):
    """Set a weight to NaN, and state the new checksum."""
    with safe_open(path, "pt") as opened:
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}
        facts = opened.metadata()[FACTS]
    tensors["head.bias"][0] = torch.nan
    return to_bytes(tensors, {FACTS: facts, CHECKSUM: checksum_of([facts, dict(sorted(tensors.items()))])})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            with_nan,
            r"cpu-0-0\.003\.safetensors holds no weights that finetune trained \(its weights head.bias are not finite",
        ),
        (
            lambda path, other: other.read_bytes(),
            r"contains the weights of .*/cpu-1-0\.003\.safetensors, not of .*/cpu-0-0",
        ),
    ],
    ids=["NaN", "another seed"],
)
def test_weights_that_are_not_finite_or_of_another_seed_are_refused(data, encoder, tmp_path, content, reason):
    training = replace(QUICK, epochs=1, seeds=2).prepare(replace(data, work=tmp_path), encoder)
    for seed in (0, 1):
        training.train(seed, 3e-3)
    file, other = sorted(tmp_path.glob("*.safetensors"))
    FinetunedEncoder(encoder, file)
    file.write_bytes(content(file, other))
    with pytest.raises(BadModel, match=reason):
        FinetunedEncoder(encoder, file)


def test_validation_patients_choose_one_rate_for_all_seeds(data, encoder):
    recipe = replace(QUICK, rates=(1e-4, 1e-3, 1e-2), seeds=2)
    assert isinstance(recipe, EnsembleProtocol) and recipe.members == 6
    quality = [0.6, 0.9, 0.7, 0.6, 0.6, 0.9]  # Seed 0 at each rate, then seed 1.
    answers = [
        (np.full((10, 2), number), np.full((10, 2), number), {"validation_quality": one})
        for number, one in enumerate(quality)
    ]
    output = recipe.combine(data, answers)
    assert output.details["rate"] == 1e-2 and output.details["validation_quality"] == [0.7, 0.9]
    np.testing.assert_array_equal(output.values, np.full((10, 2), 3.5))
    lost = (np.empty(0), np.empty(0), {"validation_quality": -np.inf, "reason": "never finite"})
    output = recipe.combine(data, [*answers[:5], lost])
    assert output.details["rate"] == 1e-3 and output.details["quality_by_rate"]["0.01"] is None
    with pytest.raises(NotApplicable, match="never finite"):
        recipe.combine(data, [lost] * 6)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_bfloat16_learns_the_same(data, encoder, mode, monkeypatch):
    """Check the arithmetic of a GPU on a processor; predictions are in single precision."""
    recipe = replace(QUICK, epochs=15, rates=(1e-2,))
    monkeypatch.setattr(loop, "_autocast", lambda *_: torch.autocast("cpu", torch.bfloat16))
    output = recipe.predict(data, encoder, mode)
    assert roc_auc_score(data.labels[output.indices], output.values[:, 1]) > 0.9


@pytest.mark.filterwarnings("ignore:CUDA is not available")
def test_only_a_gpu_computes_in_bfloat16():
    with loop._autocast(torch.device("cpu"), True):
        assert not torch.is_autocast_enabled("cpu")
    with loop._autocast(torch.device("cuda"), True):
        assert torch.get_autocast_dtype("cuda") == torch.bfloat16


def test_too_small_gpu_gives_one_message(data, encoder, monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(loop, "_one_epoch", full)
    with pytest.raises(CardioBenchError, match=r"8 recordings of 2 parts at once.*finetune\.micro_batch=4"):
        trained(QUICK, data, encoder)


def test_too_large_rate_is_left_out(data, encoder, monkeypatch):
    recipe = replace(QUICK, rates=(3e-3, 1.0), epochs=1)
    monkeypatch.setattr("cardiobench.extensions.finetune.adapt.factor", lambda *_: 1e30)
    values, held, details = recipe.train(recipe.prepare(data, encoder), 1)
    assert not values.size and not held.size and "never gave answers of finite quality" in details["reason"]


def test_diverged_network_is_reported(data, encoder):
    """Check validation at the best rate: half of the pairs in order, or a squared error above the variance of the labels."""
    recipe = replace(QUICK, rates=(1e-3, 1e-2))
    regression = data_of(signals()[0], np.arange(40.0), encoder, REGRESSION)
    for given, shape, qualities in ((data, (10, 2), (0.4, 0.5, 0.51)), (regression, (10,), (-9.0, -1.0, -0.99))):
        found = []
        for quality in qualities:
            answers = [
                (np.zeros(shape), np.zeros(shape), {"validation_quality": one})
                for one in (2 * min(qualities) - 1, quality)
            ]
            found.append(any("diverged" in one for one in recipe.combine(given, answers).warnings))
        assert found == [True, True, False]


def test_regression_predicts_in_its_unit(encoder):
    labels = 55 + 10 * np.random.default_rng(1).normal(size=40)
    output = QUICK.predict(data_of(signals()[0], labels, encoder, REGRESSION), encoder, "full")
    assert output.values.shape == (10,) and np.abs(output.values - 55).max() < 40


def test_step_uses_each_sampled_part_once():
    parts = {f"r{count}": torch.arange(count)[:, None] for count in (1, 3, 5)}
    inputs = PreparedRecordings(parts.__getitem__, list(parts))
    drawn = inputs.drawn(np.arange(3), 4, np.random.default_rng(0))[:, :, 0]
    assert drawn.shape == (3, 4) and set(drawn[0].tolist()) == {0}
    assert set(drawn[1].tolist()) == {0, 1, 2} and len(set(drawn[2].tolist())) == 4


class Blocked(Tiny):
    """Encoder that disables gradients without a decorator."""

    def encode(self, parts):
        return super().encode(parts)


class InPlace(Tiny):
    """Encoder that modifies a value in place that the gradient needs."""

    @torch.no_grad()
    def encode(self, parts):
        vectors = self.network(parts).sigmoid()
        vectors.mul_(2)
        return vectors


class Untraceable(Tiny):
    """Encoder that refuses to run while its operations are counted."""

    def encode(self, parts):
        if torch.utils._python_dispatch._get_current_dispatch_mode_stack():
            raise ValueError("no modes here")
        return super().encode(parts)


class Late(Tiny):
    """Encoder that makes its head at the first call."""

    def encode(self, parts):
        self.network.head = self.network.head if hasattr(self.network, "head") else torch.nn.Linear(8, 8)
        return self.network.head(super().encode(parts))


def test_layers_made_at_the_first_call_are_not_part_of_a_model(data):
    """Test a fresh encoder, as in a run that finds its embeddings stored."""
    with pytest.raises(NotApplicable, match="makes layers at its first call"):
        trained(QUICK, data, Late())
    lazy = Tiny()
    lazy.network.unused = torch.nn.LazyLinear(3)
    with pytest.raises(NotApplicable, match="makes layers at its first call"):
        QUICK.check_encoder(lazy, BINARY)


@pytest.mark.parametrize("name", ["cardiobench/minirocket", "cardiobench/ecg-morphology", "cardiobench/metadata"])
def test_models_without_a_network_are_not_applicable(name):
    with pytest.raises(NotApplicable, match=rf"{name} has no PyTorch network"):
        QUICK.check_encoder(load_model(name).encoder, BINARY)


def test_untrainable_networks_are_not_applicable(data, encoder):
    with pytest.raises(NotApplicable, match="no gradient with respect to any parameter"):
        trained(QUICK, data, Blocked())
    with pytest.raises(NotApplicable, match="3 blocks, but training of 4 was requested"):
        trained(replace(QUICK, blocks=4), data, encoder, mode="last")
    with pytest.raises(NotApplicable, match="recordings of toy/as, which are not on this machine"):
        trained(QUICK, replace(data, parts_of=None), encoder)
    with pytest.raises(NotApplicable, match=r"cannot be traced.*modified by an inplace operation"):
        trained(QUICK, data, InPlace())
    with pytest.raises(NotApplicable, match="cannot be traced"):
        trained(QUICK, data, Untraceable())
    given = SimpleNamespace(name="x/table")
    with pytest.raises(NotApplicable, match="x/table has no PyTorch network"):
        QUICK.check_encoder(given, BINARY)


def test_network_settings_are_part_of_the_name():
    """Check every option except the choice of modes, which has no other valid value."""
    default = {"full": "full", "last": "last", "lora": "lora"}
    assert dict(zip(MODES, Finetune(modes=MODES).variants(BINARY), strict=True)) == default
    others = {
        "blocks": 3, "rank": 4, "layer_rates": "steps", "layer_decay": 0.5, "rates": (1e-3, 3e-4), "epochs": 3, "seeds": 1, "seed": 1,
        "parts": 2, "batch_size": 8, "micro_batch": 4, "weight_decay": 0.1,
    }  # fmt: skip
    assert {*others, "modes", "device"} == {one.name for one in fields(FinetuneRecipe)}
    named = {name: replace(Finetune(modes=MODES), **{name: value}).variants(BINARY) for name, value in others.items()}
    assert named["rates"] == tuple(f"{mode}.rates=0.001,0.0003" for mode in MODES)
    assert named["blocks"] == ("full", "last.blocks=3", "lora") and named["rank"] == ("full", "last", "lora.rank=4")
    assert named["layer_decay"] == ("full.layer_decay=0.5", "last.layer_decay=0.5", "lora")
    assert all(f"full.{name}={others[name]}" == named[name][0] for name in ("seed", "seeds", "epochs"))
    assert Finetune(rank=4, epochs=3).result_variants(BINARY)[2] == "lora.rank=4.epochs=3"


def test_missing_peft_names_its_extra(monkeypatch):
    monkeypatch.setattr("cardiobench.extensions.finetune.protocol.find_spec", lambda name: None)
    with pytest.raises(
        MissingExtra, match=r"'lora' in finetune\.modes needs the package 'peft'.*cardiobench\[finetune\]"
    ):
        Finetune(modes=MODES).check(BINARY)
    Finetune(modes=("full", "last")).check(BINARY)
