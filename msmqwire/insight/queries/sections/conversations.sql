-- title: what one host sends to another: messages and bytes of their bodies, changes in them, packets of sessions and of
-- title: discovery; the number of queues, and the ten that most messages went to
-- about: what one host sends to another: packets, messages and the `bytes` of their bodies, the `changes` of which they
-- about: notify, packets of `sessions` and of `discovery`. `queue_count` is the number of queues, and `queues` has the
-- about: ten that most messages went to; both are null below the 100,000 pairs with messages that have the most packets
-- position: 3
-- count: packets
WITH sent AS (
    SELECT
        src, dst, 0 AS packets, 0 AS messages, 0 AS bytes, 1 AS changes, 0 AS sessions, 0 AS discovery, time_ns, place
    FROM notifications
    UNION ALL
    -- Bytes in which no packet begins are no message
    SELECT
        src, dst, 1, CASE WHEN fault.code = 'bad_signature' THEN 0 ELSE 1 END, coalesce(message_size, 0), 0, 0, 0,
        time_ns, place
    FROM messages
    UNION ALL
    SELECT src, dst, 1, 0, 0, 0, 1, 0, time_ns, place FROM sessions
    UNION ALL
    SELECT src, dst, 1, 0, 0, 0, 0, 1, time_ns, place FROM topology
),
pairs AS (
    SELECT
        src, dst, sum(packets) AS packets, sum(messages) AS messages, sum(bytes) AS bytes, sum(changes) AS changes,
        sum(sessions) AS sessions, sum(discovery) AS discovery, min(time_ns) AS first_seen, max(time_ns) AS last_seen,
        first_places(place) AS frames
    FROM sent
    GROUP BY src, dst
),
busiest AS (
    SELECT src, dst FROM pairs WHERE messages > 0 ORDER BY packets DESC, frames[1] LIMIT 100000
),
queues AS (
    SELECT src, dst, queue, count(*) AS messages, min(place) AS place
    FROM (
        SELECT src, dst, destination_queue AS queue, place
        FROM messages
        WHERE destination_queue IS NOT NULL AND destination_queues IS NULL
        UNION ALL
        SELECT src, dst, unnest(destination_queues), place FROM messages WHERE destination_queues IS NOT NULL
    ) AS messages_to
    WHERE EXISTS (
            SELECT 1
            FROM busiest
            WHERE busiest.src IS NOT DISTINCT FROM messages_to.src AND busiest.dst IS NOT DISTINCT FROM messages_to.dst
        )
    GROUP BY src, dst, queue
),
ranked AS (
    SELECT
        src, dst, queue, row_number() OVER (PARTITION BY src, dst ORDER BY messages DESC, place, queue) AS number,
        count(*) OVER (PARTITION BY src, dst) AS queue_count
    FROM queues
),
named AS (
    SELECT
        src, dst, max(queue_count) AS queue_count,
        list_sort(list(struct_pack(number := number, queue := queue))) AS queues
    FROM ranked
    WHERE number <= 10
    GROUP BY src, dst
),
with_queues AS (
    SELECT
        busiest.src, busiest.dst, coalesce(queue_count, 0) AS queue_count,
        coalesce(list_transform(queues, lambda each: each.queue), []) AS queues
    FROM busiest
    LEFT JOIN named ON busiest.src IS NOT DISTINCT FROM named.src AND busiest.dst IS NOT DISTINCT FROM named.dst
)
SELECT
    pairs.src, pairs.dst, packets, messages, bytes, changes, sessions, discovery,
    CASE messages WHEN 0 THEN 0 ELSE queue_count END AS queue_count, CASE messages WHEN 0 THEN [] ELSE queues END AS queues,
    first_seen, last_seen, frames
FROM pairs
LEFT JOIN with_queues
    ON pairs.src IS NOT DISTINCT FROM with_queues.src AND pairs.dst IS NOT DISTINCT FROM with_queues.dst
ORDER BY packets DESC, frames[1]
