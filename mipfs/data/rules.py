"""The rules by which a file becomes columns, columns are scaled and rows hold: a result names a version of them.

Results are read, scaled and checked by the version that they name, for ever; docs/certificate.md has all of them.
"""

FIRST_RULES = 1
"""Of results that name none."""
SCALING_RULES = 2
"""The last by which something is read or scaled otherwise than before: data of later ones are scaled by these."""
EXACT_RULES = 3
"""The first by which whole variables enter rows exactly."""
RULES = 3
"""Of results that are written now."""
KNOWN_RULES = (FIRST_RULES, SCALING_RULES, EXACT_RULES)
