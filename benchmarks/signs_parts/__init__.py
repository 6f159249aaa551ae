"""The parts of `benchmarks/signs.py`: where its signs come from, and its report."""
