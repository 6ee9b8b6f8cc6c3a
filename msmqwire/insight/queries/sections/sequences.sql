-- title: sequences of transactional messages: what was sent, order-acknowledged, missing
-- about: a sequence of transactional messages of a queue manager to a queue: how many numbers were `sent`, from the first to
-- about: the last; how many of them an OrderAck `acknowledged`, and the last of these; how many were sent more than once
-- about: (`repeated`). `missing` are numbers between them that a message names as the one before it, and that were not
-- about: captured; a number that its sender skipped, as of a message that expired, is not among them
-- position: 10
-- count: sent
WITH numbers AS (
    SELECT
        source_queue_manager, tx_sequence_id, queue, tx_sequence_number AS number, min(src) AS src, min(dst) AS dst,
        min(least(previous_tx_sequence_number, tx_sequence_number - 1)) AS previous, max(answers & 4) AS answers,
        max(copies) AS copies, min(first_ns) AS first_ns, max(last_ns) AS last_ns, min(place) AS place
    FROM asked_messages
    WHERE tx_sequence_number IS NOT NULL
    GROUP BY source_queue_manager, tx_sequence_id, queue, tx_sequence_number
),
followed AS (
    SELECT
        source_queue_manager, tx_sequence_id, queue, number, src, dst, previous, answers, copies, first_ns, last_ns,
        place,
        lag(number) OVER (PARTITION BY source_queue_manager, tx_sequence_id, queue ORDER BY number) AS last_captured
    FROM numbers
)
SELECT
    queue, min(src) AS src, min(dst) AS dst, source_queue_manager, tx_sequence_id AS sequence, count(*) AS sent,
    min(number) AS first_number, max(number) AS last_number, sum(CASE answers WHEN 4 THEN 1 ELSE 0 END) AS acknowledged,
    max(CASE answers WHEN 4 THEN number END) AS last_acknowledged,
    sum(CASE WHEN copies > 1 THEN 1 ELSE 0 END) AS repeated,
    sum(CASE WHEN previous > last_captured THEN previous - last_captured ELSE 0 END) AS missing,
    min(CASE WHEN previous > last_captured THEN last_captured + 1 END) AS first_missing,
    min(first_ns) AS first_seen, max(last_ns) AS last_seen, first_places(place) AS frames
FROM followed
GROUP BY source_queue_manager, tx_sequence_id, queue
ORDER BY sent DESC, frames[1], queue, source_queue_manager, sequence
