"""From documents to a published version: each is prepared by itself, and all are committed together."""
