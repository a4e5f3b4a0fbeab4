"""From a question to the right sections of the right collections.

select ∥ extract  ->  resolve  ->  plan  ->  query each collection, in parallel  ->  assemble
"""
