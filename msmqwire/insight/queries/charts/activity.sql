-- title: packets of a kind that one host sent to another within a step of time, which is a second, a minute, an hour or
-- title: a day by the time that all packets span; pairs of hosts without number, beyond the 20 with the most, are one
WITH happened AS (
    -- Bytes in which no packet begins are no message
    SELECT
        src, dst, CASE WHEN fault.code = 'bad_signature' THEN 'other packet' ELSE 'message' END AS kind, 1 AS packets,
        time_ns
    FROM messages
    UNION ALL
    SELECT src, dst, 'other packet', 1, time_ns FROM sessions
    UNION ALL
    SELECT src, dst, 'other packet', 1, time_ns FROM topology
    UNION ALL
    -- Refusals are among the packets
    SELECT src, dst, 'refusal', 0, time_ns FROM messages WHERE message_class >= 32768
    UNION ALL
    SELECT src, dst, 'refusal', 0, time_ns FROM sessions WHERE refused
    UNION ALL
    SELECT src, dst, 'refusal', 0, time_ns FROM notifications WHERE rule IS NOT NULL
),
spans AS (SELECT (max(time_ns) - min(time_ns)) // 1000000000 AS seconds FROM happened),
steps AS (
    SELECT
        CASE WHEN seconds < 600 THEN 1 WHEN seconds < 36000 THEN 60 WHEN seconds < 2160000 THEN 3600 ELSE 86400 END
            AS step
    FROM spans
),
pairs AS (
    SELECT src, dst, row_number() OVER (ORDER BY sum(packets) DESC, min(time_ns), src, dst) AS number
    FROM happened
    WHERE time_ns IS NOT NULL
    GROUP BY src, dst
),
shown AS (SELECT src, dst, number FROM pairs WHERE number <= 20)
SELECT
    shown.src AS src, shown.dst AS dst, kind, step, time_ns // 1000000000 // step * step AS begin,
    min(time_ns) AS first_seen, count(*) AS packets
FROM happened
CROSS JOIN steps
LEFT JOIN shown ON happened.src IS NOT DISTINCT FROM shown.src AND happened.dst IS NOT DISTINCT FROM shown.dst
WHERE time_ns IS NOT NULL
GROUP BY shown.src, shown.dst, shown.number, kind, step, time_ns // 1000000000 // step
ORDER BY begin, shown.number, kind
