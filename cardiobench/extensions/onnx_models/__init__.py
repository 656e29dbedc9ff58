"""Load networks from ONNX files, with a stated preprocessing and without code of the user."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(loaders={".onnx": "cardiobench.extensions.onnx_models.load:find_loader"})
