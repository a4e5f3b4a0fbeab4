"""Enrichment: summaries, entities and identifiers added to passages before they are indexed."""
