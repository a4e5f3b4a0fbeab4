"""What is uploaded below ``incoming/`` of the bucket: listed, prepared in batches, committed together.

The folder ``incoming/<collection>/`` is mirrored: what lies there is in the collection, and what is deleted there is
deleted from it. Passages that were loaded otherwise stay.
"""
