"""Score against cost of the models of a task, with the models that no other one beats in both."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(tables={"cost": "cardiobench.extensions.pareto.write:write_costs"})
