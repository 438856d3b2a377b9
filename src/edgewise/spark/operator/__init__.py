"""Run fragments as operators of an ordinary Spark plan: DataFrame in, DataFrame out."""
