"""Whole decisions: knapsacks and tours drawn as PyEPO draws them."""
