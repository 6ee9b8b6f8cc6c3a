-- title: events in the order of time: the first message of each host to each queue, findings, refusals, negative
-- title: acknowledgments, gaps, faults; equal events of one minute are one row
-- about: an event, in the order of time, with hosts, a `detail` and its `meaning`. Equal events of one minute are one row.
-- about: `first_message`: the first message of a host to a queue. `finding`: packets that `detect` finds, by the
-- about: [rule](#findings) in `detail`, in one row for both hosts. `refusal`: a refused session, or a change notification that no receiver
-- about: applies. `negative_acknowledgment`: its class. `gap`: bytes of a packet are missing in its stream. `fault`:
-- about: another fault
-- position: 5
-- count: packets
WITH happened AS (
    SELECT 'finding' AS event, NULL AS minute, src, dst, rule AS detail, title AS meaning, time_ns, place FROM findings
    UNION ALL
    SELECT 'refusal', minute, src, dst, kind, NULL, time_ns, place FROM sessions WHERE refused
    UNION ALL
    SELECT 'refusal', minute, src, dst, rule, NULL, time_ns, place FROM notifications WHERE rule IS NOT NULL
    UNION ALL
    SELECT
        'negative_acknowledgment', minute, src, dst, message_class_name, message_class_meaning, time_ns, place
    FROM messages
    WHERE message_class >= 32768
    UNION ALL
    SELECT
        CASE WHEN fault.code = 'incomplete' THEN 'gap' ELSE 'fault' END, minute, src, dst,
        CASE WHEN fault.code = 'incomplete' THEN '' ELSE fault.code || ' ' END
            || regexp_replace(fault.field, '\[\d+\]', '', 'g'),
        NULL, time_ns, place
    FROM all_rows
    WHERE fault IS NOT NULL
),
sent AS (
    SELECT src, dst, destination_queue AS queue, time_ns, place
    FROM messages
    WHERE destination_queue IS NOT NULL AND destination_queues IS NULL
    UNION ALL
    SELECT src, dst, unnest(destination_queues), time_ns, place
    FROM messages
    WHERE destination_queues IS NOT NULL
),
events AS (
    SELECT
        min(time_ns) AS first_seen, max(time_ns) AS last_seen, event, src, dst, detail, min(meaning) AS meaning,
        count(*) AS packets, first_places(place) AS frames
    FROM happened
    GROUP BY event, minute, src, dst, detail
    UNION ALL
    SELECT
        min(time_ns), min(time_ns), 'first_message', src, arg_min(dst, place), queue, NULL, 1, [min(place)]
    FROM sent
    GROUP BY src, queue
)
SELECT first_seen, last_seen, event, src, dst, detail, meaning, packets, frames
FROM events
ORDER BY first_seen NULLS LAST, frames[1], event, src, dst, detail
