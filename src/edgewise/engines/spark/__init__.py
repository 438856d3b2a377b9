"""A plan on Spark: stream or batch, same rows. The only door for pyspark."""
