"""Documents uploaded below ``incoming/`` of the bucket: listed, prepared in batches, committed together.

The folder ``incoming/<collection>/`` is mirrored: a document deleted there is deleted from the collection. Passages
loaded in another way stay.
"""
