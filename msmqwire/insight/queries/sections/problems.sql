-- title: faults and violations, by rule; destinations with the address of another receiver; ports that were not read
-- about: a fault or a violation, by rule and sender. Of a `destination` the message names in `DIRECT=TCP:` another IPv4
-- about: address than the one that received it: `detail` has both; the receiver may be behind a translation of addresses,
-- about: or refuse the message. `not_read` are streams on other ports than those that were read, by what they look like in
-- about: `code`, with the port in `detail`; a lake has none
-- position: 16
-- count: rows
WITH found AS (
    SELECT
        in_table, 'fault' AS problem, fault.code AS code, regexp_replace(fault.field, '\[\d+\]', '', 'g') AS field, src,
        NULL AS detail, time_ns, place
    FROM all_rows
    WHERE fault IS NOT NULL
    UNION ALL
    SELECT in_table, 'violation', unnest(violations), NULL, src, NULL, time_ns, place
    FROM all_rows
    WHERE array_length(violations) > 0
    UNION ALL
    SELECT
        'messages', 'destination', 'other_address', 'DestinationQueue', src,
        destination_queue || ' received by ' || dst, time_ns, place
    FROM messages
    WHERE starts_with(destination_queue, 'DIRECT=') AND destination_queues IS NULL AND NOT contains(dst, ':')
        AND message_class = 0 AND fault IS NULL
        AND NOT starts_with(lower(destination_queue), 'direct=tcp:' || dst || '\')
        AND regexp_matches(destination_queue, '^DIRECT=[Tt][Cc][Pp]:[1-9]\d{0,2}(\.(0|[1-9]\d{0,2})){3}\\')
)
SELECT
    in_table, problem, code, field, src, detail, count(*) AS rows, min(time_ns) AS first_seen,
    max(time_ns) AS last_seen, first_places(place) AS frames
FROM found
GROUP BY in_table, problem, code, field, src, detail
UNION ALL
SELECT NULL, 'not_read', protocol, NULL, NULL, 'port ' || port, sum(streams), NULL, NULL, NULL
FROM unread_streams
GROUP BY protocol, port
ORDER BY rows DESC, frames[1], in_table, problem, code, field, src, detail
