-- title: a queue, its messages and the bytes of their bodies; the 20 queues with the most bytes
WITH sent AS (
    SELECT unnest(coalesce(destination_queues, [destination_queue])) AS queue, src, message_size FROM messages
)
SELECT queue, count(*) AS messages, count(DISTINCT src) AS senders, coalesce(sum(message_size), 0) AS bytes
FROM sent
WHERE queue IS NOT NULL
GROUP BY queue
ORDER BY bytes DESC, messages DESC, queue
LIMIT 20
