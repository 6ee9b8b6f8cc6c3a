-- title: 100 negative acknowledgments of a class in one minute, or more
-- severity: low
-- reference: [MS-MQMQ] 2.2.18.1.6
-- source: message classes with the bit 0x8000
-- about: a host sent another one at least 100 negative acknowledgments of a class within a minute of the clock
-- evidence: src, dst, class, minute
-- each: minute
-- sid: 1801012
-- category: Misc activity
-- transport: TCP
SELECT src, src_port, dst, dst_port, message_class_name AS class, minute, place, time_ns
FROM messages
WHERE message_class >= 32768 AND minute IS NOT NULL
QUALIFY count(*) OVER (PARTITION BY src, dst, message_class_name, minute) >= 100
