"""Fit the model to released measurements: groups of rare values, residuals, interactions, corrections."""
