-- title: DataLength of an SRMPEnvelopeHeader overflows to a length that fits: a check for QueueJumper
-- severity: medium
-- reference: CVE-2023-21554
-- source: metasploit-framework: modules/auxiliary/scanner/msmq/cve_2023_21554_queuejumper.rb, message_malformed
-- about: DataLength of an SRMPEnvelopeHeader leaves the packet (CVE-2023-21554). In a check the length, doubled in 32
-- about: bits, fits the packet, so that a vulnerable receiver answers; any other such length makes it write outside of
-- about: its buffer
-- evidence: src, dst, length
-- sid: 1801002
-- category: Attempted Information Leak
-- transport: TCP
-- probe: yes
-- suricata: flow:established,to_server; content:"LIOR"; offset:4; depth:4;
-- suricata: content:"|3c 00 73 00 65 00 3a 00 45 00 6e 00 76 00|"; byte_test:4,>,0x7fffffff,-18,relative,little;
-- suricata: reference:cve,2023-21554;
-- The envelope begins with <se:Env, and DataLength is the 4 bytes before it
SELECT src, src_port, dst, dst_port, fault.value AS length, place, time_ns
FROM messages
WHERE fault.field = 'SRMPEnvelopeHeader.DataLength'
    AND fault.value >= 2147483648 AND fault.value * 2 % 4294967296 <= after
