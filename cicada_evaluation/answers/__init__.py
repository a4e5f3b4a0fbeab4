"""Measuring answers: a set's questions are answered by the strategy's own code, and what it writes is checked."""
