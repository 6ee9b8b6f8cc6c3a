-- title: one queue manager GUID at several addresses: cloned machines, or one with several addresses
-- severity: medium
-- reference: [MS-MQDMPR] 3.1.1.1
-- source: GUIDs in pings, connections, and messages that no routing server has processed
-- about: a queue manager GUID at several addresses: machines cloned after MSMQ was installed, or one machine with
-- about: several addresses
-- evidence: queue_manager, address
-- list: address
-- sid: 1801007
-- category: Misc activity
WITH shown AS (
    SELECT own_manager AS queue_manager, src, dst, place, time_ns FROM messages WHERE own_manager IS NOT NULL
    UNION ALL
    SELECT own_manager, src, dst, place, time_ns FROM sessions WHERE own_manager IS NOT NULL
)
SELECT queue_manager, src AS address, src, dst, place, time_ns
FROM shown
WHERE queue_manager IN (
    SELECT queue_manager FROM shown GROUP BY queue_manager HAVING min(src) <> max(src)
)
