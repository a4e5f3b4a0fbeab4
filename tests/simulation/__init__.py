"""A seeded simulation of whole requests: the production code over twins of every service, in virtual time."""
