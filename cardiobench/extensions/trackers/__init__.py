"""Report run scores to experiment trackers supported by accelerate, such as wandb and tensorboard."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(hooks="cardiobench.extensions.trackers.hooks:TrackerHooks")
