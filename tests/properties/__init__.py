"""The table of PROPIDs and its C index."""
