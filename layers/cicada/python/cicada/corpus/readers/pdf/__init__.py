"""PDF: the text of each page, with headings and paragraphs found by layout."""
