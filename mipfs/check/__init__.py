"""The checker of certificates: it shares no code with the drivers, only the reading of data."""
