"""Labelled data, and the commands that train the small classifiers from them: ``python -m training.routing``."""
