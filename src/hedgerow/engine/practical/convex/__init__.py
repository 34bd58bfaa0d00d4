"""Convex questions in the practical profile: answers, their bars, and the certificate of declared losses."""
