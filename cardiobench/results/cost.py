"""Store device-independent encoding costs of a model and timings by device."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cardiobench.results.record import EMBEDDINGS, Count, Name, Number, Part

NOT_MEASURED = "not measured: these embeddings are from an older version without costs; encode them again"
NOT_SEEN = f"not known: {EMBEDDINGS}"
NO_NETWORK = "not applicable: no network"
PREFIXES = ("", "k", "M", "G", "T", "P")
"""Decimal prefixes of large numbers."""


@dataclass(frozen=True)
class Timing(Part):
    """Measured encoding time on one device.

    Attributes:
        device: Name of the device.
        seconds: Mean seconds per recording to encode prepared parts in one process.
        decoding: Mean seconds per recording to read, decode and prepare its parts in one process, without encoding.
        recordings: Number of recordings encoded on this device.
        peak_memory: Peak memory in bytes during encoding: allocated memory on a GPU, memory of the whole process on a
            CPU; None if the system does not report it.
        cpu_seconds: Mean seconds of CPU time per recording to read, prepare and encode it, summed over all threads and
            decoding processes. Unlike the other times, it does not depend on what else the machine does. NaN if not
            measured.
    """

    device: Name
    seconds: Number
    decoding: Number
    recordings: Count
    peak_memory: Count | None = None
    cpu_seconds: Number = math.nan


@dataclass(frozen=True)
class Cost(Part):
    """Cost of the embeddings behind a result; all fields except `timings` are independent of the device.

    Attributes:
        width: Dimension of a vector.
        bytes: Mean bytes of a recording's stored vectors.
        precision: Precision of the network, "fp32" or "bf16".
        parameters: Number of trained parameters used to encode a recording; None if there are none or they were not
            counted.
        flops: Mean floating-point operations per recording from `torch.utils.flop_counter`, with two per multiply-add.
            Matrix products, convolutions, attention and recurrent layers are counted; NaN under the same conditions as
            `parameters`.
        text_parameters: Number of parameters used only to encode prompts; None without a text tower.
        text_flops: Floating-point operations per prompt; NaN without a text tower.
        reason: Reason for missing parameters and operations; empty otherwise.
        timings: Measurements, one per device.
    """

    width: Count
    bytes: Number
    precision: str = ""
    parameters: Count | None = None
    flops: Number = math.nan
    text_parameters: Count | None = None
    text_flops: Number = math.nan
    reason: str = ""
    timings: tuple[Timing, ...] = ()

    @property
    def sort_key(self) -> tuple[float, float, int]:
        """Sort key by operations, parameters and width; models without a network come first, unknown costs last."""
        if self.reason == NO_NETWORK:
            return 0.0, 0.0, self.width
        return _known(self.flops), _known(self.parameters), self.width


def cost_of(shards: Sequence[Mapping[str, Any]], width: int, size: float) -> Cost:
    """Combine the costs stated by shards.

    Args:
        shards: Cost of each shard (`cardiobench.embeddings.cost`); an empty mapping if a shard has none.
        width: Dimension of a vector.
        size: Mean bytes of a recording's stored vectors.
    """
    told = [one for one in shards if one.get("recordings")]
    if not told:
        return Cost(width, size, reason=next((one["reason"] for one in shards if "reason" in one), NOT_MEASURED))
    by_device: dict[str, list[Mapping[str, Any]]] = {}
    for one in told:
        by_device.setdefault(one["device"], []).append(one)
    timings = tuple(_timing(device, ones) for device, ones in sorted(by_device.items()))
    # A shard written while the network could not be traced must not hide the cost from other runs.
    first = next((one for one in told if "flops" in one), told[0])
    known: dict[str, Any] = {"precision": first["precision"], "timings": timings}
    if not first.get("parameters"):
        return Cost(width, size, reason=first.get("reason", NO_NETWORK), **known)
    each = sum(one["parts"] for one in told) / sum(one["recordings"] for one in told)
    text = {name: first[name] for name in ("text_parameters", "text_flops") if name in first}
    return Cost(width, size, parameters=first["parameters"], flops=first["flops"] * each, **text, **known)


def _timing(device: str, shards: Sequence[Mapping[str, Any]]) -> Timing:
    count = sum(one["recordings"] for one in shards)
    seconds, decoding = (sum(one[name] for one in shards) / count for name in ("seconds", "decoding"))
    cpu = sum(one.get("cpu_seconds", math.nan) for one in shards) / count
    memory = [one["peak_memory"] for one in shards if one["peak_memory"] is not None]
    return Timing(device, seconds, decoding, count, max(memory, default=None), cpu)


def _known(value: float | None) -> float:
    return math.inf if value is None or math.isnan(value) else float(value)


def short(value: float | None, unit: str = "") -> str:
    """Format a large number with three digits and a decimal prefix, such as 2.15 M; a dash for None."""
    if value is None or math.isnan(value):
        return "–"
    step = min(max(math.floor(math.log10(abs(value)) / 3), 0), len(PREFIXES) - 1) if value else 0
    if abs(value) >= 999.5 * 1000**step and step < len(PREFIXES) - 1:  # The number rounds to 1000 of this prefix.
        step += 1
    scaled = value / 1000**step
    text = f"{scaled:.0f}" if scaled >= 99.95 or (step == 0 and scaled == int(scaled)) else f"{scaled:.3g}"
    return " ".join(filter(None, (text, f"{PREFIXES[step]}{unit}")))


COLUMNS = ("parameters", "FLOPs", "width", "bytes", "time on its device")
"""Column names of costs; all except parameters and width are per recording."""


def cells(cost: Cost | None) -> tuple[str, ...]:
    """Return cells for `COLUMNS`, or dashes if the result states no cost."""
    if cost is None:
        return ("–",) * len(COLUMNS)
    counted = (short(cost.parameters), short(cost.flops))
    if cost.reason:
        counted = (cost.reason.partition(":")[0],) * 2
    return (*counted, str(cost.width), short(cost.bytes, "B"), timing_text(cost))


def timing_text(cost: Cost) -> str:
    """Return seconds per recording, peak memory and device of each timing, and the precision; a dash for none."""
    return "; ".join(_measured(one, cost.precision) for one in cost.timings) or "–"


def _measured(one: Timing, precision: str) -> str:
    memory = "" if one.peak_memory is None else f", peak {short(one.peak_memory, 'B')}"
    times = f"{1000 * one.seconds:.3g} ms, decoding {1000 * one.decoding:.3g} ms"
    work = "" if math.isnan(one.cpu_seconds) else f", CPU time {1000 * one.cpu_seconds:.3g} ms"
    return f"{times}{work}{memory} ({one.device}, {precision})"


def text_tower(cost: Cost) -> str:
    """Return the cost of the text tower as text; empty without one."""
    if cost.text_parameters is None:
        return ""
    return f"text tower: {short(cost.text_parameters)} parameters, {short(cost.text_flops)} FLOPs per prompt"
