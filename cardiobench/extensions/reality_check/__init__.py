"""Raw crops: ECG models fed as the released code of arXiv:2509.25095 feeds them, beside as they were trained."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(conditions={"reality_check": "cardiobench.extensions.reality_check.condition"})
