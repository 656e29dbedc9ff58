"""Dense prediction: segmentation masks and landmarks of single frames from frozen tokens."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"dense": "cardiobench.extensions.dense.protocol:DensePrediction"},
    hooks="cardiobench.extensions.dense.hooks:DenseHooks",
    answers={"frames": "cardiobench.extensions.dense.form"},
)
