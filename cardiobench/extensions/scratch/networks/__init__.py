"""Networks that are trained from nothing, apart from those of `cardiobench.models.nets`."""
