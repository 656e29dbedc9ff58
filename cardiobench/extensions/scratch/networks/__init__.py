"""Networks for training from scratch, in addition to `cardiobench.models.blocks`."""
