"""Word documents: a ZIP archive of XML, unpacked within the limits."""
