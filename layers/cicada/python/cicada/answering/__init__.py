"""Strategies, prompts, citations, and the attempt that runs them."""
