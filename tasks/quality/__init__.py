"""How good mixed queries are: how much they mix, how accurate, fluent and realistic they are.

The measures are those of the MiLQ paper: tables 1 and 2, figure 9, appendices A.3 and A.4.
"""
