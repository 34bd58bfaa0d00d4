"""Certificates: the largest error of any small question, released for a share of the budget."""
