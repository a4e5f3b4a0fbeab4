"""The conversation: the last turns of a session, questions completed from them, and the list of conversations.

It imports nothing by itself: the message processor reads the list alone, and starts fast.
"""
