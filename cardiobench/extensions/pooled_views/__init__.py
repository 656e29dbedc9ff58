"""Pool view recognition over all available datasets as `echo/view`."""

from cardiobench.core.extensions import Extension

EXTENSION = Extension(
    tasks="cardiobench.extensions.pooled_views.tasks",
    hooks="cardiobench.extensions.pooled_views.hooks:PooledViewHooks",
)
