"""Plot scores against computational cost with the Pareto front."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(tables={"cost": "cardiobench.extensions.pareto.write:write_costs"})
