-- title: a message that asked for acknowledgments, and those that were captured
-- about: a message that asked for acknowledgments: it names an administration queue and sets a flag for them, or it is
-- about: transactional. `asked` has the bits 1, 2, 4 and 8 of its flags PA, PR, NA and NR, 16 for the OrderAck and 32 for
-- about: the FinalAck of a transactional message; `answers` has the bits 1 and 2 for `ack_reach_queue` and `ack_receive`,
-- about: and 4 for an OrderAck of its number or a later one, with the times of the first of each: `reached_ns`,
-- about: `received_ns` and `ordered_ns`. `negative` is the class of a negative one, and `negative_ns` its time. `copies`
-- about: is how often a host sent it to the same address
WITH packets AS (
    SELECT
        source_queue_manager, message_id, destination_queue AS queue, src, dst, tx_sequence_id, tx_sequence_number,
        previous_tx_sequence_number,
        CASE WHEN admin_queue IS NULL AND admin_queues IS NULL THEN 0 ELSE properties_flags & 15 END
        + CASE
            WHEN tx_sequence_number IS NULL THEN 0
            WHEN final_ack_required OR negative_source_journaling OR positive_source_journaling THEN 48
            ELSE 16
        END AS asked,
        time_ns, place
    FROM messages
    WHERE kind = 'user_message' AND message_class = 0 AND fault IS NULL
        AND (tx_sequence_number IS NOT NULL OR properties_flags & 15 <> 0)
),
sent AS (
    SELECT
        source_queue_manager, message_id, queue, src, dst, tx_sequence_id, tx_sequence_number,
        min(previous_tx_sequence_number) AS previous_tx_sequence_number, max(asked) AS asked, count(*) AS copies,
        min(time_ns) AS first_ns, max(time_ns) AS last_ns, min(place) AS place
    FROM packets
    WHERE asked > 0
    GROUP BY source_queue_manager, message_id, queue, src, dst, tx_sequence_id, tx_sequence_number
),
-- An OrderAck acknowledges all numbers of its sequence up to its own. Only some name the queue manager that they are
-- for; no two queue managers have the same sequence, unless one is a copy of the other
numbered AS (
    SELECT
        source_queue_manager, message_id, queue, src, dst, tx_sequence_id, tx_sequence_number,
        previous_tx_sequence_number, asked, copies, first_ns, last_ns, place, NULL AS ordered_ns, NULL AS named_ns
    FROM sent
    WHERE tx_sequence_number IS NOT NULL
    UNION ALL
    SELECT
        nullif(queue_manager_address, '00000000-0000-0000-0000-000000000000'), NULL, NULL, NULL, NULL,
        acknowledged_tx_sequence_id, acknowledged_tx_sequence_number, NULL, NULL, NULL, NULL, NULL, NULL,
        -- The packets of some captures have no time
        CASE
            WHEN queue_manager_address = '00000000-0000-0000-0000-000000000000'
                THEN coalesce(time_ns, 9223372036854775807)
        END,
        CASE
            WHEN queue_manager_address <> '00000000-0000-0000-0000-000000000000'
                THEN coalesce(time_ns, 9223372036854775807)
        END
    FROM messages
    WHERE kind = 'order_ack' AND fault IS NULL
),
ordered AS (
    SELECT
        source_queue_manager, message_id, queue, src, dst, tx_sequence_id, tx_sequence_number,
        previous_tx_sequence_number, asked, copies, first_ns, last_ns, place,
        least(
            min(ordered_ns) OVER (PARTITION BY tx_sequence_id ORDER BY tx_sequence_number DESC),
            min(named_ns) OVER (
                PARTITION BY tx_sequence_id, source_queue_manager ORDER BY tx_sequence_number DESC
            )
        ) AS ordered_ns
    FROM numbered
    UNION ALL
    SELECT
        source_queue_manager, message_id, queue, src, dst, NULL, NULL, NULL, asked, copies, first_ns, last_ns, place,
        NULL
    FROM sent
    WHERE tx_sequence_number IS NULL
),
-- A router sends a message as well
asking AS (
    SELECT
        source_queue_manager, message_id, queue, arg_min(src, place) AS src, arg_min(dst, place) AS dst,
        max(tx_sequence_id) AS tx_sequence_id, max(tx_sequence_number) AS tx_sequence_number,
        max(previous_tx_sequence_number) AS previous_tx_sequence_number, max(asked) AS asked, max(copies) AS copies,
        min(ordered_ns) AS ordered_ns, min(first_ns) AS first_ns, max(last_ns) AS last_ns, min(place) AS place
    FROM ordered
    WHERE asked IS NOT NULL
    GROUP BY source_queue_manager, message_id, queue
),
answering AS (
    SELECT
        correlation_guid AS source_queue_manager, correlation_ordinal AS message_id, message_class,
        message_class_name, time_ns
    FROM messages
    WHERE kind = 'user_message' AND message_class > 1 AND fault IS NULL
    UNION ALL
    SELECT
        acknowledged_source_queue_manager, acknowledged_message_id, message_class, message_class_name, time_ns
    FROM messages
    WHERE kind = 'final_ack' AND fault IS NULL
),
answered AS (
    SELECT
        source_queue_manager, message_id,
        min(CASE message_class WHEN 2 THEN time_ns END) AS reached_ns,
        min(CASE message_class WHEN 16384 THEN time_ns END) AS received_ns,
        min(CASE WHEN message_class >= 32768 THEN message_class_name END) AS negative,
        min(CASE WHEN message_class >= 32768 THEN time_ns END) AS negative_ns,
        max(CASE message_class WHEN 2 THEN 1 ELSE 0 END) AS reached,
        max(CASE message_class WHEN 16384 THEN 2 ELSE 0 END) AS received
    FROM answering
    GROUP BY source_queue_manager, message_id
)
SELECT
    asking.source_queue_manager, asking.message_id, queue, src, dst, tx_sequence_id, tx_sequence_number,
    previous_tx_sequence_number, asked, copies,
    coalesce(reached, 0) + coalesce(received, 0) + CASE WHEN ordered_ns IS NULL THEN 0 ELSE 4 END AS answers,
    negative, reached_ns, received_ns, nullif(ordered_ns, 9223372036854775807) AS ordered_ns, negative_ns, first_ns, last_ns, place
FROM asking
LEFT JOIN answered
    ON asking.source_queue_manager = answered.source_queue_manager AND asking.message_id = answered.message_id
