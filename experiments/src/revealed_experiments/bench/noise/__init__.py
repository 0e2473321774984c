"""`revealed bench noise`: our defaults beside the Fenchel-Young loss, on noisy and exact data."""
