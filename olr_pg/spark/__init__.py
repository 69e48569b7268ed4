"""The Spark session, the Java it runs on, and the decode job."""
