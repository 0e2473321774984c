"""Every method on the paper's synthetic problems and CaVE's yardstick."""
