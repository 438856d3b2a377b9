"""Parse tokens to a tree by recursive descent. Each class adds its topic to the one before:

Cursor -> Expressions -> Annotations -> Sources -> States -> Queries -> Definitions -> Apps
"""
