-- title: runs of discovery: requests of a client, and replies to them
-- about: a run of discovery: a request has no answer where `replies` is 0
-- position: 14
-- count: packets
WITH packets AS (
    SELECT
        coalesce(request_id, correlation_id) AS request_id, CASE type WHEN 'request' THEN src ELSE dst END AS client,
        type, time_ns, place
    FROM topology
    WHERE fault IS NULL
)
SELECT
    request_id, client, count(*) AS packets, count(*) FILTER (WHERE type = 'request') AS requests,
    count(*) FILTER (WHERE type = 'reply') AS replies, min(time_ns) AS first_seen, max(time_ns) AS last_seen,
    first_places(place) AS frames
FROM packets
GROUP BY request_id, client
ORDER BY packets DESC, frames[1]
