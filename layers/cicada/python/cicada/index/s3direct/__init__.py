"""Reading the index from S3 without the SDK, whose import and calls cost a cold function most of its time."""
