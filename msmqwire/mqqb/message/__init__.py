"""UserMessage packets: their headers, reader, writer and bodies ([MS-MQMQ] 2.2.19-2.2.20)."""
