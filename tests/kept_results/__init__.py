"""Results of every kind as versions of the package wrote them, which later ones read and verify for ever."""
