"""Roles, leases, recovery: decided by pure code, carried out by a driver."""
