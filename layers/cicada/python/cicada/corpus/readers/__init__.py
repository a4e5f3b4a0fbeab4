"""Readers: a document's bytes in, its blocks of text out."""
