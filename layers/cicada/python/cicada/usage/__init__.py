"""What users, groups and the deployment have used, and the limits that a question must keep to."""
