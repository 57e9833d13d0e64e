"""Distractors: sentences that look like another one and say something else.

``checks`` tells whether a sentence may be one, ``rules`` makes them without an LLM.
"""
