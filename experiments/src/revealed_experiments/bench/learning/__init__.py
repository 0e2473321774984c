"""Linear models on the paper's data: margins, noise, speed."""
