"""Compiled loops: numba over dense columns and CSC or CSR triples, without objects of ours."""
