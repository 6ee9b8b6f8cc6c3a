-- title: discovery reply from a server that is not expected
-- severity: high
-- reference: [MS-MQSD] 5.1
-- source: the servers that the caller expects
-- about: a discovery reply from a server that no `--expect` names
-- evidence: src, dst
-- sid: 1801009
-- category: Potentially Bad Traffic
-- transport: UDP
SELECT src, src_port, dst, dst_port, place, time_ns FROM topology WHERE type = 'reply' AND NOT expected
