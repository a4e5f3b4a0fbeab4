"""The local cloud's agents: what a model with tools would do next, and the services that run such a model."""
