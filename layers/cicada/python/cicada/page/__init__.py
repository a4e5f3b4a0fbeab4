"""The web page as its bucket holds it: versioned assets, the document, and its configuration."""
