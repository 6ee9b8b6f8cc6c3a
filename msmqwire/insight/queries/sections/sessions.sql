-- title: packets of one direction of a TCP connection; missing_bytes lie between its first and last packet, in gaps or in
-- title: packets with faults
-- about: a direction of a TCP connection. `missing_bytes` are the bytes between its first and its last packet that
-- about: belong to no decoded packet: they are in gaps, or in packets with faults. Connections that use the same ports
-- about: one after the other are one row, which can hide missing bytes
-- position: 12
-- count: packets
WITH sent AS (
    -- Of a packet with the fault incomplete the size may be known, but not all of its bytes are there. PacketSize of a
    -- message does not count its SessionHeader: [MS-MQMQ] 2.2.20.4
    SELECT
        src, src_port, dst, dst_port, CASE WHEN fault.code = 'bad_signature' THEN 0 ELSE 1 END AS messages,
        CASE
            WHEN fault IS NOT NULL OR packet_size IS NULL THEN 0
            WHEN ack_sequence_number IS NULL THEN packet_size
            ELSE packet_size + 16
        END AS size,
        0 AS refused, CASE WHEN fault IS NULL THEN 0 ELSE 1 END AS faults, stream_offset, time_ns, place
    FROM messages
    WHERE stream_offset IS NOT NULL
    UNION ALL
    SELECT
        src, src_port, dst, dst_port, 0, CASE WHEN fault IS NULL THEN coalesce(packet_size, 0) ELSE 0 END,
        CASE WHEN refused THEN 1 ELSE 0 END, CASE WHEN fault IS NULL THEN 0 ELSE 1 END, stream_offset, time_ns, place
    FROM sessions
    WHERE stream_offset IS NOT NULL
)
SELECT
    src, src_port, dst, dst_port, count(*) AS packets, sum(messages) AS messages, sum(size) AS bytes,
    sum(refused) AS refused, sum(faults) AS faults,
    -- Connections that had the same ports one after the other overlap
    greatest(max(stream_offset + size) - min(stream_offset) - sum(size), 0) AS missing_bytes,
    min(time_ns) AS first_seen, max(time_ns) AS last_seen, first_places(place) AS frames
FROM sent
GROUP BY src, src_port, dst, dst_port
ORDER BY packets DESC, frames[1]
