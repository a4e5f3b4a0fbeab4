"""Records of what administrators change."""
