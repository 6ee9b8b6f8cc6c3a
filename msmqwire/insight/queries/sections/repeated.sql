-- title: messages that a host sent to another more than once
-- about: a message that a host sent to another more than once
-- position: 13
-- count: copies
-- limit: 262144
SELECT
    src, dst, source_queue_manager, message_id, count(*) AS copies, min(time_ns) AS first_seen,
    max(time_ns) AS last_seen, first_places(place) AS frames
FROM messages
WHERE fault IS NULL AND message_id IS NOT NULL
GROUP BY src, dst, source_queue_manager, message_id
HAVING count(*) > 1
ORDER BY copies DESC, frames[1], src, dst, source_queue_manager, message_id
