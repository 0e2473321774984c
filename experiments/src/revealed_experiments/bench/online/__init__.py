"""Learning online: the problem of Sakaue et al., a stream of noisy paths, and costs that drift."""
