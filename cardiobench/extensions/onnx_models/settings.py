"""Stated preprocessing of a network in an ONNX file: of ECGs as in `SignalSettings`, of frames as in `FrameFormat`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from cardiobench.core.errors import BadModel
from cardiobench.extensions.onnx_models.file import FLOATING, TYPES, CheckedFile, Value, shape_text
from cardiobench.models.blocks.signal_settings import SIGNAL_KEYS, SignalSettings, signal_settings
from cardiobench.models.frames import FrameSettings, frame_settings
from cardiobench.models.stated import Stated

SAMPLING_KEYS = ("frames", "stride", "start", "nifti")
WAYS = (
    "fs=500 seconds=10 layout=leads_first for ECGs (also leads, scale, length), or layout=NCHW size=224 scale=1 "
    "mean=[0.485,0.456,0.406] std=[0.229,0.224,0.225] for frames (also colour, interpolation, fit, frames, stride, start)"
)
LAYOUTS = ("NCHW", "NHWC", "NCTHW", "NTCHW", "NTHWC")
MOST_FRAMES = 4096
"""Largest number of frames of a clip."""
Axes = tuple[int | str, ...]


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, (int, float)) else value


def _as_pair(value: Any) -> Any:
    return (value, value) if isinstance(value, int) else value


Side = Annotated[int, Field(ge=1, le=4096)]
Numbers = Annotated[tuple[float, ...], BeforeValidator(_as_tuple)]


@checked_dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class FrameFormat:
    """Input format of a network for frames or clips.

    Attributes:
        layout: Axes of the input: N parts, C channels, T frames, H rows, W columns. A layout without T takes single frames.
        size: Height and width in pixels; one number for a square.
        colour: "RGB", "BGR", or "grey" for one channel (ITU-R 601 weights).
        fit: "stretch" to the size, or "crop" the centre after scaling the frame until it covers the size.
        interpolation: Filter of the resizing, with antialias, as in Pillow.
        scale: Value of white before the normalisation; 1: values from 0 to 1, 255: unchanged values.
        mean: Subtracted from each channel after scaling.
        std: Divisor of each channel after subtraction.
    """

    layout: Literal["NCHW", "NHWC", "NCTHW", "NTCHW", "NTHWC"]  # Those of `LAYOUTS`.
    size: Annotated[tuple[Side, Side], BeforeValidator(_as_pair)]
    colour: Literal["RGB", "BGR", "grey"] = "RGB"
    fit: Literal["stretch", "crop"] = "stretch"
    interpolation: Literal["bilinear", "bicubic"] = "bilinear"
    scale: Annotated[float, Field(gt=0)] = 1.0
    mean: Numbers = (0.0,)
    std: Annotated[tuple[Annotated[float, Field(gt=0)], ...], BeforeValidator(_as_tuple)] = (1.0,)

    def __post_init__(self) -> None:
        """Refuse a number of means or deviations other than 1 and the number of channels."""
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (1, self.channels):
                raise ValueError(f"{name} has {len(values)} numbers; expected 1 or {self.channels}")

    @property
    def channels(self) -> int:
        """Number of channels."""
        return 1 if self.colour == "grey" else 3


FRAME_KEYS = tuple(field.name for field in fields(FrameFormat))
KEYS = ("output", *SIGNAL_KEYS, *(key for key in (*FRAME_KEYS, *SAMPLING_KEYS) if key not in SIGNAL_KEYS))


@dataclass(frozen=True)
class Preprocessing:
    """Checked preprocessing and output of a network.

    Attributes:
        input: Input of the network.
        output: Output that is taken as the vector.
        signal: Preparation of ECGs; None for a network of frames.
        picture: Preparation of frames; None for a network of ECGs.
        frames: Sampling and colour order of frames.
    """

    input: Value
    output: Value
    signal: SignalSettings | None
    picture: FrameFormat | None
    frames: FrameSettings

    def facts(self) -> dict[str, Any]:
        """Return everything between recording and vector as JSON values, for the embedding key."""
        own = self.signal or self.picture
        assert own is not None
        sampled = self.frames.facts() if self.picture else {}
        return {
            "library": "onnxruntime",
            **sampled,
            **asdict(own),
            "input": str(self.input),
            "output": self.output.name,
        }


def preprocessing_of(file: CheckedFile, settings: Stated, name: str) -> Preprocessing:
    """Return the preprocessing that the user states for a network, checked against its inputs and outputs.

    Args:
        file: ONNX file.
        settings: Statements of the user.
        name: Name of the model in messages.

    Raises:
        BadModel: A key or value is invalid, the shape differs from that of the network, or the output is ambiguous.
    """
    settings.check_keys(KEYS, name)
    if len(file.inputs) != 1:
        raise BadModel(
            f"{name} has {len(file.inputs)} inputs ({_listed(file.inputs)}); expected one. Export it with one."
        )
    (taken,) = file.inputs
    if any(isinstance(length, int) and length < 1 for length in taken.shape or ()):
        raise BadModel(f"{name} takes {taken}, with an axis of less than 1. Export the network again.")
    output = _chosen_output(file, settings, name)
    if "fs" in settings:
        if foreign := sorted(set(settings) - {*SIGNAL_KEYS, "output"}):
            where = settings.where(["fs", *foreign])
            raise BadModel(
                f"{name}: fs is for ECGs, and {', '.join(foreign)} for frames. Leave one of them out of {where}."
            )
        signal = signal_settings(settings, name)
        assert signal is not None
        _check_shape(taken, _signal_shape(signal), ("fs", "seconds", "leads", "layout"), settings, name)
        made = Preprocessing(taken, output, signal, None, FrameSettings())
    elif settings.get("layout", "leads_first") not in ("leads_first", "time_first"):
        picture, frames = _frame_input(settings, taken, name)
        _check_shape(taken, _frame_shape(picture, frames), ("layout", "size", "colour", "frames"), settings, name)
        made = Preprocessing(taken, output, None, picture, frames)
    else:
        raise BadModel(
            f"{name}: an ONNX file does not say how recordings become its input. Its input: {taken}. Its outputs: "
            f"{_listed(file.outputs)}; '{output.shown}' is taken. Give --preprocessing, or the folder of the file with a "
            f"cardiobench.json, with {WAYS}."
        )
    _check_type(made, settings, name)
    return made


def _frame_input(stated: Stated, taken: Value, name: str) -> tuple[FrameFormat, FrameSettings]:
    """Return the settings of frames; size and number of frames are by default those of the network's input."""
    layout, of_file = str(stated["layout"]), dict[str, Any]()
    fits = taken.shape is None or layout not in LAYOUTS or len(taken.shape) == len(layout)
    fixed = {}
    if not fits:
        of_file["size"] = 1  # Not needed, because the layout is refused below.
    elif taken.shape is not None and layout in LAYOUTS:
        fixed = {axis: length for axis, length in zip(layout, taken.shape, strict=True) if isinstance(length, int)}
    if "H" in fixed and "W" in fixed:
        of_file["size"] = (fixed["H"], fixed["W"])
    elif layout in LAYOUTS and fits and "size" not in stated:
        raise BadModel(f"{name} takes {taken}, of any size. Give --preprocessing size=224, or another one.")
    if "T" in fixed:
        of_file["frames"] = fixed["T"]
    facts = Stated({f"the input of {name}": of_file, **stated.sources})
    try:
        picture = FrameFormat(**{key: facts[key] for key in FRAME_KEYS if key in facts})
    except ValidationError as error:
        raise stated.refused(name, error) from None
    if not fits and taken.shape is not None:
        raise BadModel(
            f"{name}: the input '{taken.shown}' has shape {shape_text(taken.shape)}, {len(taken.shape)} axes, and layout={layout} "
            f"has {len(layout)}. Correct layout in {stated.where(['layout'])}: give its axes, one of {', '.join(LAYOUTS)}."
        )
    frames = frame_settings(facts.only((*SAMPLING_KEYS, *(() if picture.colour == "grey" else ("colour",)))), name)
    if (frames.sampling.count or 0) > MOST_FRAMES:
        raise BadModel(
            f"{name}: frames={frames.sampling.count}; expected at most {MOST_FRAMES}. Correct {facts.where(['frames'])}."
        )
    if "T" in picture.layout and frames.sampling.count is None:
        raise BadModel(
            f"{name}: a network of clips needs a number of frames. Give --preprocessing frames=16, or another one."
        )
    return picture, frames


def _signal_shape(signal: SignalSettings) -> Axes:
    leads, samples = len(signal.leads), round(signal.fs * signal.seconds)
    return ("N", leads, samples) if signal.layout == "leads_first" else ("N", samples, leads)


def _frame_shape(picture: FrameFormat, frames: FrameSettings) -> Axes:
    height, width = picture.size
    lengths = {"N": "N", "C": picture.channels, "T": frames.sampling.count, "H": height, "W": width}
    return tuple(lengths[axis] for axis in picture.layout)  # type: ignore[misc]


def _check_shape(taken: Value, made: Axes, keys: Sequence[str], stated: Stated, name: str) -> None:
    """Refuse a preprocessing that makes another shape than the network takes; parts are given to the network one by one."""
    if taken.shape is None:
        return
    one = (1, *made[1:])
    fits = len(taken.shape) == len(one) and all(
        isinstance(length, str) or length == wanted for length, wanted in zip(taken.shape, one, strict=True)
    )
    if fits:
        return
    batch = taken.shape[0] if len(taken.shape) == len(one) else 1
    named = f"{', '.join(keys[:-1])} or {keys[-1]}"
    advice = f"Correct {named} in {stated.where(keys)}, or export the network again."
    if isinstance(batch, int) and batch != 1:
        advice = "Export the network with a first axis of length 1, or with a dynamic one."
    raise BadModel(
        f"{name}: the input '{taken.shown}' has shape {shape_text(taken.shape)}, but the preprocessing makes {shape_text(made)}, "
        f"with one part at a time (N = 1). {advice}"
    )


def _check_type(made: Preprocessing, stated: Stated, name: str) -> None:
    kind = TYPES.get(made.input.type)
    if kind is None or (kind == "uint8" and made.signal):
        raise BadModel(f"{name} takes {made.input}. Export it with an input of float32, float64 or float16.")
    if (
        kind == "uint8"
        and made.picture
        and (made.picture.scale, set(made.picture.mean), set(made.picture.std)) != (255, {0.0}, {1.0})
    ):
        raise BadModel(
            f"{name} takes {made.input}, which are unchanged pixels, but the preprocessing makes other numbers. "
            f"Set scale=255 without mean and std in {stated.where(['scale', 'mean', 'std'])}."
        )


def _chosen_output(file: CheckedFile, settings: Stated, name: str) -> Value:
    """Return the stated output, or the only one that can have a vector for each part."""
    able = [one for one in file.outputs if one.type in FLOATING and (one.shape is None or _of_parts(one.shape))]
    listed = _listed(file.outputs)
    if (stated := settings.get("output")) is not None:
        where = settings.where(["output"])
        chosen = [one for one in file.outputs if one.name == str(stated)]
        if not chosen:
            raise BadModel(f"{name} has no output '{stated}'. Its outputs: {listed}. Correct output in {where}.")
        if chosen[0] not in able:
            raise BadModel(
                f"{name}: the output {chosen[0]} is not a vector of floating-point numbers for each part, (N, dim). Its "
                f"outputs: {listed}. Give another output in {where}, or export the network with its vectors."
            )
        return chosen[0]
    if len(able) != 1:
        many = f"{len(able)} outputs" if able else "no output"
        raise BadModel(
            f"{name} has {many} with a floating-point vector for each part, (N, dim). Its outputs: {listed}. "
            + (
                "Choose one: --preprocessing output=NAME."
                if able
                else "Export the network with its vectors as an output."
            )
        )
    return able[0]


def _of_parts(shape: Axes) -> bool:
    """Return whether a shape (N, dim) is that of one vector per part."""
    return len(shape) == 2 and shape[1] != 0


def _listed(values: tuple[Value, ...]) -> str:
    return "; ".join(map(str, values)) or "none"
