-- title: first message of the QueueJumper module of Metasploit
-- severity: medium
-- reference: CVE-2023-21554
-- source: metasploit-framework: modules/auxiliary/scanner/msmq/cve_2023_21554_queuejumper.rb, message_normal
-- about: the first, valid message of the QueueJumper module
-- evidence: src, dst, queue
-- sid: 1801005
-- category: Detection of a Network Scan
-- transport: TCP
-- probe: yes
-- suricata: flow:established,to_server; content:"LIOR"; offset:4; depth:4;
-- suricata: content:"/|00|q|00|u|00|e|00|u|00|e|00|j|00|u|00|m|00|p|00|e|00|r|00 00 00|";
-- suricata: content:"p|00|o|00|c|00 00 00|"; distance:0; reference:cve,2023-21554;
SELECT src, src_port, dst, dst_port, destination_queue AS queue, place, time_ns
FROM messages
WHERE probe = 'metasploit-probe'
