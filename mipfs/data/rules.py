"""The rules by which a file becomes columns, columns are scaled and rows hold: a result names a version of them.

Results are read, scaled and checked by the version that they name, for ever; docs/certificate.md has all of them.
"""

FIRST_RULES = 1
"""Of results that name none."""
SCALING_RULES = 2
"""The last by which columns are scaled otherwise than before: data of later ones are scaled by these."""
EXACT_RULES = 3
"""The first by which whole variables enter rows exactly."""
CELLS_RULES = 4
"""The first by which text in a data frame or a Parquet file is read as the cells of a CSV file are."""
RULES = 4
"""Of results that are written now."""
KNOWN_RULES = (FIRST_RULES, SCALING_RULES, EXACT_RULES, CELLS_RULES)
