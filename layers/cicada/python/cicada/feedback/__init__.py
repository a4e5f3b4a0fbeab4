"""What users say of answers, with what an operator needs to learn from it."""
