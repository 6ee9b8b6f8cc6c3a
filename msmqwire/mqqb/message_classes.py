"""The classes of messages by number: [MS-MQMQ] 2.2.18.1.6."""

__all__ = ["MESSAGE_CLASSES"]

# Without the prefix MQMSG_CLASS_
MESSAGE_CLASSES = {
    0x0000: "normal",
    0x0001: "report",
    0x0002: "ack_reach_queue",
    0x00FF: "order_ack",
    0x4000: "ack_receive",
    0x8000: "nack_bad_dst_q",
    0x8001: "nack_deleted",
    0x8002: "nack_reach_queue_timeout",
    0x8003: "nack_q_exceed_quota",
    0x8004: "nack_access_denied",
    0x8005: "nack_hop_count_exceeded",
    0x8006: "nack_bad_signature",
    0x8007: "nack_bad_encryption",
    0x8009: "nack_not_transactional_q",
    0x800A: "nack_not_transactional_msg",
    0x800B: "nack_unsupported_crypto_provider",
    0xC000: "nack_q_deleted",
    0xC001: "nack_q_purged",
    0xC002: "nack_receive_timeout",
    0xC004: "nack_receive_rejected",
}
