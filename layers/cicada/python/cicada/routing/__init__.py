"""From a question to a route, without a model."""
