-- title: the addresses and names of a queue manager, and the packets that show them
-- about: the GUID of a queue manager, with an address or a name, and the kind of packet that shows both
-- position: 6
-- count: rows
WITH shown AS (
    SELECT named_manager AS queue_manager, NULL AS address, manager_name AS name, 'change notification' AS evidence,
        time_ns, place
    FROM notifications
    WHERE fault IS NULL AND outcome IS DISTINCT FROM 'disregarded' AND named_manager IS NOT NULL
        AND manager_name IS NOT NULL
    UNION ALL
    SELECT own_manager, src, NULL, 'message', time_ns, place FROM messages WHERE own_manager IS NOT NULL
    UNION ALL
    SELECT own_manager, src, NULL, kind, time_ns, place FROM sessions WHERE own_manager IS NOT NULL
)
SELECT
    queue_manager, address, name, evidence, count(*) AS rows, min(time_ns) AS first_seen, max(time_ns) AS last_seen,
    first_places(place) AS frames
FROM shown
GROUP BY queue_manager, address, name, evidence
ORDER BY rows DESC, frames[1], queue_manager, address, name, evidence
