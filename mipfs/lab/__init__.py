"""The laboratory: what is measured and compared with the solver; the solver itself imports none of it."""
