"""A training step with our loss beside one of regression."""
