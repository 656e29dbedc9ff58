"""Optional features, one removable folder each; `cardiobench.core.extensions` reads their manifests."""
