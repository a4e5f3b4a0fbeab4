"""Chaos over real processes: askers of a local cloud, faults at random moments, and the verdict. ``make chaos``."""
