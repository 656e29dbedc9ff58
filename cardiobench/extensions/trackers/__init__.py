"""Trackers: the scores of a run in wandb, tensorboard and whatever else accelerate knows."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(after_run="cardiobench.extensions.trackers.report")
