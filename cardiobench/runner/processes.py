"""The processes of a run, as `accelerate launch` or `torchrun` started them."""

import os
from typing import TYPE_CHECKING

from cardiobench.core.errors import CardioBenchError

if TYPE_CHECKING:
    from accelerate import Accelerator


def start_processes() -> "Accelerator":
    """Return the accelerator of this process.

    Raises:
        CardioBenchError: it would work alone although it was started as one of several.
    """
    import torch
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    started = int(os.environ.get("WORLD_SIZE", "1"))
    if accelerator.num_processes != started:
        raise CardioBenchError(
            f"{started} processes were started, but accelerate sees {accelerator.num_processes}: each would do all the work. "
            "On a machine without GPUs launch with: accelerate launch --multi_gpu --num_processes N -m cardiobench.eval ..."
        )
    return accelerator
