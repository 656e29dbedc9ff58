"""Compare parameters and operations with hand-counted networks for every loader."""

import json
import math
import sys

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import nn

from cardiobench.data.media.types import Clip, Ecg, FrameSampling
from cardiobench.embeddings.cost import CostMeter, count_work
from cardiobench.embeddings.extract import extract
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.models.base import LoadedModel
from cardiobench.models.custom import BaseEncoder
from cardiobench.models.load import load_model
from cardiobench.results.cost import NO_NETWORK, NOT_MEASURED, Timing, cells, cost_of, short
from tests.embeddings.test_extract import CPU, Doubler, loaded, pieces
from tests.models.tiny import tiny_open_clip, tiny_siglip, tiny_timm, tiny_tokenizer

SIDE, PATCH = 32, 8
GRID = (SIDE // PATCH) ** 2


def block(tokens, width, hidden):
    """Count the operations of a transformer block: projections, scores, weighted sums, output, and two MLP layers."""
    return 2 * tokens * width * (4 * width + 2 * hidden) + 2 * 2 * tokens**2 * width


def block_size(width, hidden):
    """Count the parameters of a transformer block with biases and two layer norms."""
    return 4 * width * (width + 1) + hidden * (width + 1) + width * (hidden + 1) + 4 * width


def linear(rows, inputs, outputs):
    return 2 * rows * inputs * outputs


def counted(call, network):
    sizes, flops = count_work(call)
    return sum(sizes.values()), flops, sum(one.numel() for one in network.parameters())


def patches(width):
    return linear(GRID, 3 * PATCH**2, width)


def measured(name, folder, frames=2):
    """Return the measured cost of a loaded model for one or several frames."""
    model = load_model(name, weights=folder) if folder else load_model(name)
    clip = Clip(np.zeros((frames, 40, 40, 3), np.uint8), np.arange(frames), frames)
    meter = CostMeter(model, CPU)
    meter.count(model.encoder.transform(clip))
    return model, meter.counted


def test_layer_costs_equal_hand_counts():
    conv = nn.Sequential(nn.Conv1d(12, 8, 5), nn.BatchNorm1d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 96, 3)).eval()
    size = 12 * 8 * 5 + 8 + 16 + 8 * 96 * 3 + 3
    assert counted(lambda: conv(torch.randn(1, 12, 100)), conv) == (
        size, 2 * 8 * 96 * 12 * 5 + 2 * 8 * 96 * 3, size,
    )  # fmt: skip
    depthwise = nn.Conv2d(8, 8, 3, groups=8)
    assert counted(lambda: depthwise(torch.randn(1, 8, 10, 10)), depthwise)[1] == 2 * 8 * 64 * 9
    lstm = nn.LSTM(7, 11, num_layers=2, bidirectional=True, batch_first=True).eval()
    assert counted(lambda: lstm(torch.randn(1, 9, 7)), lstm)[1] == 2 * (2 * 9 * 44 * 18 + 2 * 9 * 44 * 33)
    bilinear = nn.Bilinear(5, 7, 3)
    assert counted(lambda: bilinear(torch.ones(2, 5), torch.ones(2, 7)), bilinear)[1] == linear(2, 5, 21) + 3 * linear(
        2, 7, 1
    )


def test_counting_imports_no_compiler(monkeypatch):
    """Check that PyTorch's compiler, whose import takes two seconds, may be missing."""
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)
    layer = nn.Linear(4, 3)
    assert counted(lambda: layer(torch.ones(2, 4)), layer)[:2] == (15, linear(2, 4, 3))


@pytest.mark.parametrize("fused", [True, False])
def test_fused_layer_counts_as_its_parts(fused):
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(fused)
    size, flops, held = counted(lambda: layer(torch.randn(1, 5, 16)), layer)
    assert torch.backends.mha.get_fastpath_enabled() == fused, "the setting of the process is unchanged"
    torch.backends.mha.set_fastpath_enabled(before)
    assert (size, flops) == (held, block(5, 16, 32)) == (block_size(16, 32), 22_080)


def test_unused_layers_are_ignored_and_shared_layers_count_once():
    shared, unused = nn.Linear(4, 4), nn.Linear(100, 100)
    network = nn.ModuleList([shared, shared, unused])
    assert counted(lambda: shared(shared(torch.ones(1, 4))), network)[:2] == (20, 64)


def test_timm_model(tmp_path):
    _, found = measured("org/tiny", tiny_timm(tmp_path / "tiny"))
    width, tokens = 24, GRID + 1
    flops = patches(width) + 2 * block(tokens, width, 4 * width)
    size = width * (3 * PATCH**2 + 1) + width + tokens * width + 2 * block_size(width, 4 * width) + 2 * width
    assert found == {"parameters": size, "flops": flops}


def test_text_tower_of_open_clip_is_counted_separately(tmp_path):
    _, found = measured("org/clip", tiny_open_clip(tmp_path / "clip"))
    width, tokens = 32, GRID + 1
    flops = patches(width) + 2 * block(tokens, width, 4 * width) + linear(1, width, 16)
    size = 3 * PATCH**2 * width + width + tokens * width + 4 * width + 2 * block_size(width, 4 * width) + width * 16
    text = 2 * block(77, 16, 64) + linear(1, 16, 16)
    text_size = 49408 * 16 + 77 * 16 + 2 * block_size(16, 64) + 2 * 16 + 16 * 16
    assert found == {"parameters": size, "flops": flops, "text_parameters": text_size, "text_flops": text}


def test_transformers_model(tmp_path):
    _, found = measured("org/siglip", tiny_siglip(tmp_path / "siglip"))
    width, hidden, words, context = 32, 48, len(tiny_tokenizer()), 24
    blocks, norm = 2 * block_size(width, hidden), 2 * width
    # Pooling head: a query of one token, keys and values of all tokens, output, and two layers after a norm.
    head = linear(1, width, width) + linear(GRID, width, 2 * width) + 2 * 2 * GRID * width
    head += linear(1, width, width) + 2 * linear(1, width, hidden)
    head_size = width + 4 * width * (width + 1) + norm + hidden * (width + 1) + width * (hidden + 1)
    assert found == {
        "parameters": width * (3 * PATCH**2 + 1) + GRID * width + blocks + norm + head_size,
        "flops": patches(width) + 2 * block(GRID, width, hidden) + head,
        "text_parameters": (words + context) * width + blocks + norm + width * (width + 1),
        "text_flops": 2 * block(context, width, hidden) + linear(1, width, width),
    }


def test_torchvision_network_in_a_user_encoder_is_counted():
    torchvision = pytest.importorskip("torchvision")

    class Own(BaseEncoder):
        name, sampling = "lab/own", FrameSampling()
        network = torchvision.models.resnet18().eval()

        def transform(self, recording):
            return torch.zeros(1, 3, 224, 224)

        def encode(self, parts):
            return self.network(parts)

    own = Own()
    meter = CostMeter(loaded(own), CPU)
    meter.count(torch.zeros(1, 3, 224, 224))
    # Published with torchvision's weights: 11,689,512 parameters and 1.814 G multiply-adds.
    assert meter.counted["parameters"] == 11_689_512
    assert meter.counted["flops"] / 2e9 == pytest.approx(1.814, abs=5e-4)


def test_built_in_random_vit():
    model, found = measured("cardiobench/random-vit", None)
    size = 192 * (3 * 16**2 + 1) + 192 + 50 * 192 + 12 * block_size(192, 768) + 2 * 192
    assert found["parameters"] == size == sum(one.numel() for one in model.encoder.network.parameters())
    assert found["flops"] == linear(49, 3 * 16**2, 192) + 12 * block(50, 192, 768)


@pytest.mark.slow
def test_built_in_xresnet1d101():
    """Test 1,000 samples: stem to 500, pooling to 250, stages of 250, 125, 63 and 32; a norm has two numbers per channel."""
    convolutions = [(500, 12, 32, 5), (500, 32, 32, 5), (500, 32, 64, 5)]
    before = 64
    for wider, places, inner, blocks in ((250, 250, 64, 3), (250, 125, 128, 4), (125, 63, 128, 23), (63, 32, 192, 3)):
        for number in range(blocks):
            convolutions += [(places if number else wider, before, inner, 1), (places, inner, inner, 5)]
            convolutions += [(places, inner, 4 * inner, 1)]
            if before != 4 * inner:
                convolutions.append((places, before, 4 * inner, 1))
            before = 4 * inner
    model = load_model("cardiobench/random-xresnet1d101")
    meter = CostMeter(model, CPU)
    meter.count(model.encoder.transform(Ecg(np.zeros((1000, 12), np.float32), 100)))
    assert meter.counted == {
        "parameters": sum(inputs * outputs * taps + 2 * outputs for _, inputs, outputs, taps in convolutions),
        "flops": 2 * sum(places * inputs * outputs * taps for places, inputs, outputs, taps in convolutions),
    }


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_precision_does_not_change_counts(precision):
    network = nn.Linear(6, 5)

    class Own(Doubler):
        def encode(self, parts):
            return network(parts)

    meter = CostMeter(loaded(Own(), precision), CPU)
    meter.count(torch.ones(7, 6))
    assert meter.counted == {"parameters": 35, "flops": 60}, "of one part"


def test_network_that_cannot_be_counted_is_still_encoded(tmp_path):
    class Closed(Doubler):
        def encode(self, parts):
            if len(torch.utils._python_dispatch._get_current_dispatch_mode_stack()):
                raise RuntimeError("no modes here")
            return parts * 2

    store, jobs = EmbeddingStore(tmp_path, "closed", "toy", {}), pieces((0, 1), None)
    jobs = [type(job)(job.source, job.number, store) for job in jobs]
    assert not extract(loaded(Closed()), jobs, device=CPU, batch_size=2, workers=0)
    cost = store.load(["r0", "r1"], ["s", "s"]).cost
    assert cost.reason.startswith("not counted: ") and cost.reason.endswith("no modes here")
    assert cost.parameters is None and cost.timings[0].recordings == 2


@pytest.mark.filterwarnings("ignore:.*quantiz")
@pytest.mark.parametrize("form", ["quantised", "buffers"])
def test_buffers_as_weights_do_not_make_a_model(form):
    """Check that a quantised network is not taken for a model without a network, which would be the cheapest of all."""
    meter = CostMeter(loaded(encoder := Network()), CPU)
    if form == "quantised":
        encoder.network = torch.ao.quantization.quantize_dynamic(nn.Sequential(encoder.network), {nn.Linear})
    else:
        encoder.network = nn.BatchNorm1d(3, affine=False).eval()
    meter.count(torch.ones(2, 3))
    cost = cost_of([meter.facts(seconds=1.0, decoding=1.0, cpu_seconds=1.5, recordings=2, parts=2)], 5, 20.0)
    assert cost.reason.startswith("not counted: ") and cost.parameters is None and cost.sort_key[0] == math.inf


class Network(Doubler):
    """Encoder that maps recordings of two parts with three numbers each to five numbers."""

    def __init__(self):
        super().__init__()
        self.network = nn.Linear(3, 5)

    def encode(self, parts):
        return self.network(parts)


def encoded(store, numbers, encoder):
    jobs = [type(job)(job.source, job.number, store) for job in pieces(numbers, None)]
    extract(loaded(encoder), jobs, device=CPU, batch_size=2, workers=0)


@pytest.mark.parametrize("workers", [0, 2])
def test_stored_embeddings_keep_the_cost_of_their_run(tmp_path, workers):
    store = EmbeddingStore(tmp_path, "network", "toy", {"dtype": "float32"})
    jobs = pieces((0, 1, 4), store)
    extract(loaded(Network()), jobs, device=CPU, batch_size=2, workers=workers)
    again = EmbeddingStore(tmp_path, "network", "toy", {"dtype": "float32"})
    cost = again.load(["r4", "r0"], ["s", "s"]).cost
    assert (cost.width, cost.bytes, cost.precision) == (5, 2 * 5 * 4, "fp32")
    assert (cost.parameters, cost.flops, cost.text_parameters) == (20, 2 * 30, None), "two parts per recording"
    (timing,) = cost.timings
    assert timing.recordings == 3 and timing.device.startswith("cpu: ") and 0 < timing.seconds < 1
    assert 0 < timing.decoding < 1
    assert timing.peak_memory is None or timing.peak_memory > 1e7
    assert again.cost == cost


def test_each_device_keeps_its_own_time(tmp_path):
    store = EmbeddingStore(tmp_path, "network", "toy", {})
    facts = {"parameters": 20, "flops": 30, "precision": "fp32", "decoding": 0.5, "cpu_seconds": 3.0, "peak_memory": 10}
    for number, (device, seconds) in enumerate((("cpu: a", 4.0), ("cuda: b", 0.2), ("cpu: a", 2.0))):
        cost = {**facts, "device": device, "seconds": seconds, "recordings": 2, "parts": 2 * (number + 1)}
        ids = [f"{number}{one}" for one in "ab"]
        store.append(ids, ["s"] * 2, [np.zeros((number + 1, 4), np.float32)] * 2, cost=cost)
    cost = store.load([f"{n}{one}" for n in range(3) for one in "ab"], ["s"] * 6).cost
    assert cost.timings == (Timing("cpu: a", 1.5, 0.25, 4, 10, 1.5), Timing("cuda: b", 0.1, 0.25, 2, 10, 1.5))
    assert cost.flops == 30 * 2 and cost.bytes == 16 * 2, "means over recordings with one, two and three parts"
    assert "1.5e+03 ms, decoding 250 ms, CPU time 1.5e+03 ms, peak 10 B (cpu: a, fp32); 100 ms" in cells(cost)[-1]


def test_shards_of_older_versions_state_no_cost(tmp_path):
    store = EmbeddingStore(tmp_path, "old", "toy", {})
    path = store.append(["a"], ["s"], [np.zeros((1, 4), np.float32)])
    with pa.memory_map(str(path)) as source:
        stated = pa.ipc.open_file(source).read_all().schema.metadata
    assert json.loads(stated[b"cost"]) == {}
    cost = store.load(["a"], ["s"]).cost
    assert (cost.width, cost.bytes, cost.reason, cost.timings) == (4, 16.0, NOT_MEASURED, ())


def test_model_without_network_states_no_cost():
    facts = {"parameters": 0, "flops": 999, "precision": "fp32", "device": "cpu", "seconds": 1.0, "decoding": 1.0}
    cost = cost_of([{**facts, "recordings": 1, "parts": 1, "peak_memory": None}], 3, 12.0)
    assert cost.reason == NO_NETWORK and cost.parameters is None and math.isnan(cost.flops)
    assert cells(cost)[:3] == ("not applicable", "not applicable", "3")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (999, "999"), (999.6, "1 k"), (2_149_381, "2.15 M"), (1e9, "1 G"), (99_960_000, "100 M"),
     (12_345, "12.3 k"), (1e21, "1000000 P"), (None, "–"), (math.nan, "–"), (0.5, "0.5")],
)  # fmt: skip
def test_large_numbers_are_abbreviated(value, text):
    assert short(value) == text


def test_encoder_without_a_card_is_still_counted():
    model = LoadedModel(Network(), "by the test", {})
    meter = CostMeter(model, CPU)
    meter.count(torch.ones(2, 3))
    first = meter.counted
    meter.count(torch.ones(2, 3))
    assert meter.counted is first, "counted only once"
