"""What restores a deployment's data from backups: the index from objects' earlier versions or copies, and the table."""
