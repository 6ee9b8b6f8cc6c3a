-- title: body written by BinaryFormatter, or ExtensionData: a program that deserializes it may run code of the sender
-- severity: medium
-- reference: https://learn.microsoft.com/dotnet/standard/serialization/binaryformatter-security-guide
-- source: [MS-NRBF] 2.6.1, SerializationHeaderRecord
-- about: a body or an ExtensionData of .NET's BinaryFormatter, in binary or in base64. A program that deserializes it may
-- about: execute code of the sender. Primitive values, strings and arrays of them are no findings, but Suricata alerts
-- evidence: src, dst, queue
-- sid: 1801008
-- category: Potentially Bad Traffic
-- transport: TCP
-- suricata: flow:established,to_server; content:"LIOR"; offset:4; depth:4;
-- suricata: content:"|00 01 00 00 00 ff ff ff ff 01 00 00 00 00 00 00 00|";
SELECT src, src_port, dst, dst_port, destination_queue AS queue, place, time_ns
FROM messages
WHERE deserialized = 'binary_formatter'
