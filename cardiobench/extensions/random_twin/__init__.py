"""A trained ECG network beside the same network with random weights, on the bundled ECGs."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(hooks="cardiobench.extensions.random_twin.hooks:RandomTwinHooks")
