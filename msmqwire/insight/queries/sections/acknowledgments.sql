-- title: messages that asked for acknowledgments, and what was answered after how long; those without an answer first
-- about: a message that asked for acknowledgments, in `asked`: by its administration queue and flags, or as a transactional
-- about: message, which has the `number` and the `previous_number` of its `sequence`. `answers` are the positive ones in
-- about: the captures, with the milliseconds until the first of each; an OrderAck answers all numbers up to its own.
-- about: `negative` is the class of a negative one. `answered` is false where a positive one was asked for and none was
-- about: captured, which may have been sent elsewhere or later; it is null where only negative ones were asked for and
-- about: none was captured. `copies` is how often a host sent the message to the same address
-- position: 8
-- count: copies
SELECT
    queue, src, dst, source_queue_manager, message_id, tx_sequence_id AS sequence, tx_sequence_number AS number,
    previous_tx_sequence_number AS previous_number,
    named_bits(
        asked,
        ['positive_arrival_ack', 'positive_receive_ack', 'negative_arrival_ack', 'negative_receive_ack', 'order_ack',
         'final_ack']
    ) AS asked,
    CASE WHEN answers > 0 OR negative IS NOT NULL THEN true WHEN asked & 19 > 0 THEN false END AS answered,
    named_bits(answers, ['ack_reach_queue', 'ack_receive', 'order_ack']) AS answers, negative,
    CASE WHEN reached_ns >= first_ns THEN (reached_ns - first_ns) / 1000000 END AS reached_ms,
    CASE WHEN received_ns >= first_ns THEN (received_ns - first_ns) / 1000000 END AS received_ms,
    CASE WHEN ordered_ns >= first_ns THEN (ordered_ns - first_ns) / 1000000 END AS ordered_ms,
    CASE WHEN negative_ns >= first_ns THEN (negative_ns - first_ns) / 1000000 END AS negative_ms,
    copies, first_ns AS first_seen, last_ns AS last_seen, [place] AS frames
FROM asked_messages
ORDER BY answered NULLS LAST, place, queue, source_queue_manager, message_id
