"""Readers: from a document's bytes to its blocks of text."""
