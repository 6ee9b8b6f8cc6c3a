"""MS-MQQB: the packets in which messages travel ([MS-MQQB] 2.2, [MS-MQMQ] 2.2.20), one at a time or by the million."""
