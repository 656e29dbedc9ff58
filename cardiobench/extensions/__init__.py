"""Features of the benchmark, each a folder that can be deleted; `cardiobench.core.extensions` reads their manifests."""
