"""Word's files: a ZIP archive of XML, read without ever unpacking more than the limits allow."""
