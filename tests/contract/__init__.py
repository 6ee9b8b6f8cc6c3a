"""The conformance checklist: every row of ``conformance.csv`` has a test that carries its id."""
