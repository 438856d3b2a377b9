"""Tokens to tree, by hand, one topic a file. Each class adds its topic to the one before:

Cursor -> Expressions -> Annotations -> Sources -> States -> Queries -> Definitions -> Apps
"""
