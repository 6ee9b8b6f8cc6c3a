"""TCP streams: reassembly, and the MSMQ packets in a stream."""
