"""Published models, one folder each: `adapter.py` loads and prepares, `network.py` computes. Model cards name the adapters."""
