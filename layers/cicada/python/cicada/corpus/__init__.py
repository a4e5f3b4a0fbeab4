"""What is searched: passages, their locators, and the readers that make them."""
