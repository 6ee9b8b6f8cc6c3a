-- title: a length of 2 GiB or more that leaves the packet
-- severity: high
-- reference: CWE-190
-- source: [MS-MQMQ] 2.2.20, [MS-MQRR] 2.2.5.1.2
-- about: another length of 2 GiB or more at which decoding failed, in any of the fields that are one: PacketSize,
-- about: MessageSize, ExtensionSize, SenderCertSize, ProviderInfoSize, the lengths of a SoapHeader, of a
-- about: CompoundMessageHeader and of the lists of queues
-- evidence: src, dst, field, length
-- sid: 1801003
-- category: Attempted Administrator Privilege Gain
-- transport: TCP
SELECT src, src_port, dst, dst_port, length_field AS field, fault.value AS length, place, time_ns
FROM messages
WHERE fault.code IN ('truncated', 'bad_size', 'too_large') AND fault.value >= 2147483648
    AND length_field <> 'SRMPEnvelopeHeader.DataLength'
