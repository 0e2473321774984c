"""Road costs from drivers' routes, beside two logits."""
