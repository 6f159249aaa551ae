"""SVMs on given columns: the numerical methods that a loss names, and the dyadic grid of their dual vectors."""
