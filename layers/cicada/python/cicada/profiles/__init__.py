"""What users keep of characters, places, episodes and theories of theirs, each fact with what supports it."""
