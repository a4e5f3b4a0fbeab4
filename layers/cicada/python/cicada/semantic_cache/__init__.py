"""The semantic cache: earlier grounded answers, found again by what a question means."""
