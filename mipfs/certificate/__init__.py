"""Certificates: what a run proves, written beside its result, and a checker that shares no code with the drivers."""
