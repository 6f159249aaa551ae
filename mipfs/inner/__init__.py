"""Relaxed problems that drivers call, in NumPy around the kernels: v(σ), its relaxations, the master over cuts."""
