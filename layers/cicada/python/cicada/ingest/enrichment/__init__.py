"""What is added to passages on their way into the index: summaries, whom and what they name, identifiers."""
