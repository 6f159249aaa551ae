"""Compiled kernels: numba over dense columns and CSC or CSR triples."""
