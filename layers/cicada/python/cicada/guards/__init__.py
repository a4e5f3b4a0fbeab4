"""English word forms and synonyms, and words of negation: what the checks of citations and evidence compare by."""
