"""What is deployed: one file a stack, small constructs beside."""
