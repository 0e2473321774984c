"""Every method on pictures."""
