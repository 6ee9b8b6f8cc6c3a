-- title: events in the order of time: the first message of a host, probes, refusals, negative acknowledgments, gaps,
-- title: faults; equal events of one minute are one row
-- about: an event, in the order of time, with hosts and a `detail`. Equal events of one minute are one row.
-- about: `first_message`: the first message that a host sent to a queue. `probe`: a packet of a scanner, by the
-- about: [rule](#findings) in `detail`. `refusal`: a refused session, or a change notification that no receiver
-- about: applies. `negative_acknowledgment`: its class. `gap`: bytes of a packet are missing in its stream. `fault`:
-- about: another fault
-- position: 5
-- count: packets
WITH happened AS (
    SELECT 'probe' AS event, minute, src, dst, probe AS detail, time_ns, place FROM topology WHERE probe IS NOT NULL
    UNION ALL
    SELECT 'probe', minute, src, dst, probe, time_ns, place FROM messages WHERE probe IS NOT NULL
    UNION ALL
    SELECT 'probe', minute, src, dst, probe, time_ns, place FROM sessions WHERE probe IS NOT NULL
    UNION ALL
    SELECT 'refusal', minute, src, dst, kind, time_ns, place FROM sessions WHERE refused
    UNION ALL
    SELECT 'refusal', minute, src, dst, rule, time_ns, place FROM notifications WHERE rule IS NOT NULL
    UNION ALL
    SELECT 'negative_acknowledgment', minute, src, dst, message_class_name, time_ns, place
    FROM messages
    WHERE message_class >= 32768
    UNION ALL
    SELECT
        CASE WHEN fault.code = 'incomplete' THEN 'gap' ELSE 'fault' END, minute, src, dst,
        CASE WHEN fault.code = 'incomplete' THEN '' ELSE fault.code || ' ' END
            || regexp_replace(fault.field, '\[\d+\]', '', 'g'),
        time_ns, place
    FROM all_rows
    WHERE fault IS NOT NULL
),
flows AS (
    SELECT
        src, dst, queue, min(time_ns) AS time_ns, min(place) AS place, arg_min(stream_offset, place) AS stream_offset
    FROM (
        SELECT src, dst, destination_queue AS queue, stream_offset, time_ns, place
        FROM messages
        WHERE destination_queue IS NOT NULL AND destination_queues IS NULL
        UNION ALL
        SELECT src, dst, unnest(destination_queues), stream_offset, time_ns, place
        FROM messages
        WHERE destination_queues IS NOT NULL
    )
    GROUP BY src, dst, queue
),
events AS (
    SELECT
        min(time_ns) AS first_seen, max(time_ns) AS last_seen, event, src, dst, detail, count(*) AS packets,
        first_places(place) AS frames
    FROM happened
    GROUP BY event, minute, src, dst, detail
    UNION ALL
    SELECT time_ns, time_ns, 'first_message', src, dst, queue, 1, [place]
    FROM flows
    QUALIFY row_number() OVER (PARTITION BY src ORDER BY time_ns NULLS LAST, place, stream_offset) = 1
)
SELECT first_seen, last_seen, event, src, dst, detail, packets, frames
FROM events
ORDER BY first_seen NULLS LAST, frames[1], event, src, dst, detail
