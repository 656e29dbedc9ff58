"""Own views: study-level answers from the images whose view the model itself recognises."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(conditions={"own_views": "cardiobench.extensions.own_views.condition"})
