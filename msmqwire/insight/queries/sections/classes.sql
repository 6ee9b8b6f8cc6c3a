-- title: messages with a class other than normal: acknowledgments by class, and the queue they went to; negative ones
-- title: report messages that were not delivered, or not received
-- about: a class of messages other than `normal`. Negative ones report messages that were not delivered, or not
-- about: received; their queue managers keep them in a dead-letter queue if the sender asked for it
-- position: 11
-- count: messages
SELECT
    message_class_name AS class, message_class AS code, message_class >= 32768 AS negative, destination_queue AS queue,
    src AS sender, count(*) AS messages, min(time_ns) AS first_seen, max(time_ns) AS last_seen,
    first_places(place) AS frames
FROM messages
WHERE message_class > 0
GROUP BY message_class_name, message_class, destination_queue, src
ORDER BY messages DESC, frames[1], class, queue, sender
