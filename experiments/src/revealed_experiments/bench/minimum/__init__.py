"""`revealed bench minimum`: how fast a fit reaches the minimum of its loss, beside POCS."""
