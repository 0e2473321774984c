"""Our projection beside the solvers others use: the same problems, equal accuracy, in turns."""
