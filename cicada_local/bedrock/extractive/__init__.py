"""The parts of the extractive answerer: reading the prompt, understanding the question, choosing, writing."""
