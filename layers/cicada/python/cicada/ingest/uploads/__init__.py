"""Uploads by users: who may send which document to which collection, and the state of what was sent.

A browser or another client sends a document straight to the bucket, with a form that the function ``uploads`` signs for
this one document. The ingest workflow then loads it (:mod:`cicada.ingest.incoming`).
"""
