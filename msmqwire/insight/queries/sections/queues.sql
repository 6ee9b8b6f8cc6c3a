-- title: who sends to a queue: messages, acknowledgments included, and bytes of their bodies
-- about: a queue and a sender: messages, and the bytes of their bodies. A message to several queues counts for each
-- position: 7
-- count: messages
WITH sent AS (
    SELECT destination_queue AS queue, src AS sender, source_queue_manager, message_size, time_ns, place
    FROM messages
    WHERE destination_queue IS NOT NULL AND destination_queues IS NULL
    UNION ALL
    -- A message to several queues counts for each
    SELECT unnest(destination_queues), src, source_queue_manager, message_size, time_ns, place
    FROM messages
    WHERE destination_queues IS NOT NULL
)
SELECT
    queue, sender, source_queue_manager, count(*) AS messages, coalesce(sum(message_size), 0) AS bytes,
    min(time_ns) AS first_seen, max(time_ns) AS last_seen, first_places(place) AS frames
FROM sent
GROUP BY queue, sender, source_queue_manager
ORDER BY messages DESC, frames[1], queue, sender, source_queue_manager
