"""Exact work on text, in any language: normal forms, tokens, sentences, features and linear classifiers over them."""
