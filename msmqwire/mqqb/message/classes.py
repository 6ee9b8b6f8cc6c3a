"""The classes of messages: [MS-MQMQ] 2.2.18.1.6."""

# Number, name without the prefix MQMSG_CLASS_, and meaning
_CLASSES = (
    (0x0000, "normal", "a message of an application"),
    (0x0001, "report", "a report that traces the route of another message"),
    (0x0002, "ack_reach_queue", "the message was delivered to its destination queue"),
    (0x00FF, "order_ack", "the receiver has the transactional messages up to a number, in their order"),
    (0x4000, "ack_receive", "an application received the message from its queue"),
    (0x8000, "nack_bad_dst_q", "the destination queue is not available to the sender"),
    (0x8001, "nack_deleted", "an administrator deleted the message before it reached its queue"),
    (0x8002, "nack_reach_queue_timeout", "the message did not reach its queue before one of its timers expired"),
    (0x8003, "nack_q_exceed_quota", "the destination queue is full: its quota is exceeded"),
    (0x8004, "nack_access_denied", "the sender may not put messages into the queue"),
    (0x8005, "nack_hop_count_exceeded", "the message passed through more queue managers than the most allowed"),
    (0x8006, "nack_bad_signature", "the signature of the message is not valid"),
    (0x8007, "nack_bad_encryption", "the receiver could not decrypt the message"),
    (0x8009, "nack_not_transactional_q", "a transactional message was sent to a queue that is not transactional"),
    (0x800A, "nack_not_transactional_msg", "a message that is not transactional was sent to a transactional queue"),
    (0x800B, "nack_unsupported_crypto_provider", "the receiver lacks the encryption provider of the message"),
    (0xC000, "nack_q_deleted", "the queue was deleted before the message was received from it"),
    (0xC001, "nack_q_purged", "the queue was purged, and the message with it"),
    (0xC002, "nack_receive_timeout", "the message was in its queue, but not received before its timer expired"),
    (0xC004, "nack_receive_rejected", "the receiving application rejected the message"),
)
MESSAGE_CLASSES = {number: name for number, name, _ in _CLASSES}
MEANINGS = {name: meaning for _, name, meaning in _CLASSES}
