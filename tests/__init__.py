"""The tests; a package, so that tests, benchmarks and fuzz targets can import ``tests.reference``."""
