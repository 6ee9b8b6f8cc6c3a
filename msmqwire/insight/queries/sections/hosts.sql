-- title: an address, its roles, and the kinds of packets that show them
-- about: an address, its `roles`, and as `evidence` the kinds of packets that show them; `packets` are those. `client`:
-- about: it sent discovery requests. `directory_server`: it replied to them, or sent change notifications of version 1
-- about: that receivers do not disregard. `queue_manager`: it sent messages, pings, or packets of a session. `router`:
-- about: it sent a message that a routing server had processed (UserHeader.Flags.RC, [MS-MQMQ] 2.2.19.2). `scanner`: it
-- about: sent packets that `detect` finds as `connection-probe`, `discovery-probe` or `metasploit-probe`, which show no
-- about: other role. `receiver`: messages of class `normal` were sent to it. Packets with faults show no role: a host
-- about: without a role sent only such, as where the rest of them was not captured
-- position: 2
-- count: packets
WITH seen AS (
    SELECT
        src AS address,
        CASE WHEN probe IS NOT NULL THEN 16 WHEN type = 'request' THEN 1 ELSE 2 END AS roles,
        CASE type WHEN 'request' THEN 1 ELSE 2 END AS evidence,
        CASE WHEN fault IS NULL THEN 1 ELSE 0 END AS packets, time_ns, time_ns AS last_ns, place
    FROM topology
    WHERE type IN ('request', 'reply')
    UNION ALL
    -- Anyone can send what no receiver applies; the packets are counted as messages
    SELECT src, CASE version WHEN 1 THEN 2 ELSE 4 END, 4, 0, time_ns, time_ns, place
    FROM notifications
    WHERE fault IS NULL AND outcome IS DISTINCT FROM 'disregarded'
    UNION ALL
    -- A router that forwards a probe is no scanner
    SELECT
        src,
        CASE
            WHEN hop_count > 0 THEN CASE WHEN fault IS NULL THEN 12 ELSE 8 END
            WHEN probe IS NOT NULL THEN 16
            ELSE 4
        END,
        CASE WHEN fault IS NULL THEN 8 ELSE 0 END | CASE WHEN hop_count > 0 THEN 16 ELSE 0 END,
        CASE WHEN fault IS NULL THEN 1 ELSE 0 END, time_ns, time_ns, place
    FROM messages
    WHERE fault IS NULL OR hop_count > 0
    UNION ALL
    SELECT
        src,
        CASE WHEN probe IS NOT NULL THEN 16 ELSE 4 END,
        CASE kind
            WHEN 'ping' THEN 32
            WHEN 'establish_connection' THEN 64
            WHEN 'connection_parameters' THEN 128
            ELSE 256
        END,
        CASE WHEN fault IS NULL THEN 1 ELSE 0 END, time_ns, time_ns, place
    FROM sessions
    WHERE kind IS NOT NULL
    UNION ALL
    -- The first packet of each sender
    SELECT dst, 32, 512, count(*), min(time_ns), max(time_ns), min(place)
    FROM messages
    WHERE fault IS NULL AND message_class = 0
    GROUP BY dst, src
    UNION ALL
    SELECT
        src, 0, CASE fault.code WHEN 'incomplete' THEN 1024 WHEN 'bad_signature' THEN 2048 ELSE 4096 END, 1, time_ns,
        time_ns, place
    FROM all_rows
    WHERE fault IS NOT NULL AND in_table <> 'notifications'
),
hosts AS (
    SELECT
        address, bit_or(roles) AS roles, bit_or(evidence) AS evidence, sum(packets) AS packets,
        min(time_ns) AS first_seen, max(last_ns) AS last_seen, first_places(place) AS frames
    FROM seen
    GROUP BY address
),
-- Many hosts have the same bits, which are named once
named AS (
    SELECT
        roles, evidence,
        named_bits(
            roles, ['client', 'directory_server', 'queue_manager', 'router', 'scanner', 'receiver']
        ) AS role_names,
        named_bits(
            evidence,
            ['discovery request', 'discovery reply', 'change notification', 'message', 'forwarded message', 'ping',
             'establish_connection', 'connection_parameters', 'session_ack', 'received message', 'incomplete packet',
             'other bytes', 'malformed packet']
        ) AS evidence_names
    FROM (SELECT DISTINCT roles, evidence FROM hosts) AS combinations
)
SELECT address, role_names AS roles, evidence_names AS evidence, packets, first_seen, last_seen, frames
FROM hosts
JOIN named USING (roles, evidence)
ORDER BY packets DESC, frames[1], address
