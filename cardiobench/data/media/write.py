"""Writing of clips in the format of the releases, for phantoms and twins."""

import io
from fractions import Fraction

import numpy as np

from cardiobench.core.errors import MissingExtra


def avi(frames: np.ndarray, fps: float, *, quality: int = 2, comment: str = "") -> bytes:
    """Encode a clip as a motion-JPEG AVI; equal clips give equal bytes.

    Args:
        frames: Uint8 RGB, (T, H, W, 3).
        fps: Frames per second.
        quality: JPEG quantiser of the encoder, 2 (finest) to 31.
        comment: Comment in the header.
    """
    try:
        import av
    except ImportError:
        raise MissingExtra("writing clips", "models", "av") from None
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="avi", options={"fflags": "+bitexact"}) as container:
        container.metadata["comment"] = comment
        stream = container.add_stream("mjpeg", rate=Fraction(fps).limit_denominator(1000))
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = "yuvj420p"
        stream.codec_context.thread_count = 1
        stream.codec_context.flags |= av.codec.context.Flags.bitexact | av.codec.context.Flags.qscale
        stream.codec_context.options = {"qmin": str(quality), "qmax": str(quality)}
        for picture in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    return buffer.getvalue()
