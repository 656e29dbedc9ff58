"""Probe with learned attention over the frozen tokens of a recording."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(protocols={"attention_probe": "cardiobench.extensions.attention_probe.protocol:AttentionProbe"})
