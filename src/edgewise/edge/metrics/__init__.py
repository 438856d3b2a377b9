"""Measure the edge: ages, counters, rates, reports."""
