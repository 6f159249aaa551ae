"""The parts of ``benchmarks/exact.py``."""
