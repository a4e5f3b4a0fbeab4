"""PDF: the text of each page, and what its layout says of headings and paragraphs."""
