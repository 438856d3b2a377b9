"""Write a fragment of a plan as Python source."""
