"""Measuring retrieval: judged sets, measures, confidence, comparison, gates. No function needs it."""
