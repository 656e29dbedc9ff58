"""Dense prediction: segmentation masks and landmarks of single frames from frozen tokens."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    protocols={"dense": "cardiobench.extensions.dense.protocol:DensePrediction"},
    plans={"dense": "cardiobench.extensions.dense.plan:plan_read_outs"},
    answers={"frames": "dense"},
    examples={"frames": "cardiobench.extensions.dense.examples:frame_examples"},
)
