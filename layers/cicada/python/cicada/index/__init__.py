"""The search index: immutable segments in an object store, named by one manifest. See docs/search-index.md.

Publish a version: ``writer`` plans a ``change`` upon the ``collection_snapshot``, writes ``segment`` objects and makes
the ``manifest`` current (``versions``). One search: ``reader`` holds the current ``loaded_index``, which ranks rows by
``vectors.search`` and ``lexical.search`` and reads what is not in memory through ``segment_reader`` and ``fetch``.
"""
