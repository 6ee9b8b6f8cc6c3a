-- title: bytes of another protocol on a port of MSMQ: a scanner, or a program with a wrong port
-- severity: low
-- reference: [MS-MQQB] 2.1
-- source: the first bytes of HTTP (RFC 9112, 9113), TLS (RFC 8446), SSH (RFC 4253), SMB ([MS-SMB2] 2.1), RDP
-- source: ([MS-RDPBCGR] 2.2.1)
-- about: a stream on port 1801 that is not MSMQ, or one on another selected port in whose connection there are packets
-- about: of MSMQ: a scanner, a health check, or a program with a wrong port.
-- about: `protocol` is `http`, `tls`, `ssh`, `smb`, `rdp` or `unknown`, by the first bytes. `unknown` is reported only
-- about: from the beginning of a stream whose SYN was captured, and only if no packet follows in its connection, from
-- about: either side: otherwise the bytes may be the end of a packet whose beginning was sent before the capture began
-- evidence: src, dst, protocol
-- sid: 1801013
-- category: Detection of a Network Scan
-- transport: TCP
-- probe: yes
WITH packets AS (
    SELECT src, src_port, dst, dst_port FROM messages WHERE protocol IS NULL
    UNION ALL
    SELECT src, src_port, dst, dst_port FROM sessions
),
-- On a port that is not that of MSMQ, other protocols are at home
of_msmq AS (
    SELECT src, src_port, dst, dst_port FROM packets WHERE src_port <> 1801 AND dst_port <> 1801
),
foreign_bytes AS (
    SELECT src, src_port, dst, dst_port, from_server, protocol, fault, stream_offset, joined, place, time_ns
    FROM messages AS bytes
    WHERE protocol IS NOT NULL
        AND (
            src_port = 1801 OR dst_port = 1801
            OR EXISTS (
                SELECT 1
                FROM of_msmq
                WHERE of_msmq.src = bytes.src AND of_msmq.src_port = bytes.src_port
                    AND of_msmq.dst = bytes.dst AND of_msmq.dst_port = bytes.dst_port
            )
            OR EXISTS (
                SELECT 1
                FROM of_msmq
                WHERE of_msmq.src = bytes.dst AND of_msmq.src_port = bytes.dst_port
                    AND of_msmq.dst = bytes.src AND of_msmq.dst_port = bytes.src_port
            )
        )
),
asked AS (
    SELECT DISTINCT src, src_port, dst, dst_port FROM foreign_bytes WHERE NOT from_server
),
sent AS (
    -- What a server sends back belongs to the finding of its client. A PacketSize is that of a BaseHeader
    SELECT *
    FROM foreign_bytes AS bytes
    WHERE fault.field IS DISTINCT FROM 'PacketSize'
        AND NOT (
            from_server AND EXISTS (
                SELECT 1
                FROM asked
                WHERE asked.src = bytes.dst AND asked.src_port = bytes.dst_port
                    AND asked.dst = bytes.src AND asked.dst_port = bytes.src_port
            )
        )
),
unknown AS (
    -- After the beginning of a stream, or of what was captured of it, such bytes may be the rest of a packet
    SELECT *
    FROM sent
    WHERE protocol = 'unknown' AND stream_offset = 0 AND joined IS NOT TRUE
    QUALIFY row_number() OVER (PARTITION BY src, src_port, dst, dst_port ORDER BY place) = 1
),
connections_of_unknown AS (
    SELECT src, src_port, dst, dst_port FROM unknown
    UNION ALL
    SELECT dst, dst_port, src, src_port FROM unknown
),
spoken AS (
    SELECT DISTINCT src, src_port, dst, dst_port
    FROM packets
    JOIN connections_of_unknown USING (src, src_port, dst, dst_port)
)
SELECT src, src_port, dst, dst_port, protocol, place, time_ns FROM sent WHERE protocol <> 'unknown'
UNION ALL
-- With a packet in the connection, in either direction, the bytes were the end of another packet
SELECT src, src_port, dst, dst_port, protocol, place, time_ns
FROM unknown
WHERE NOT EXISTS (
        SELECT 1
        FROM spoken
        WHERE spoken.src = unknown.src AND spoken.src_port = unknown.src_port
            AND spoken.dst = unknown.dst AND spoken.dst_port = unknown.dst_port
    )
    AND NOT EXISTS (
        SELECT 1
        FROM spoken
        WHERE spoken.src = unknown.dst AND spoken.src_port = unknown.dst_port
            AND spoken.dst = unknown.src AND spoken.dst_port = unknown.src_port
    )
