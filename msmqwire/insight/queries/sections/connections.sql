-- title: attempts of one host to connect to a port of another, and what became of them
-- about: attempts of one host to connect to a port of another. `segments` are its SYN segments, and each of the
-- about: `connections` is in one of five columns: `silent` (no answer was captured), `refused` (the answer was RST),
-- about: `established`, `closed` (FIN followed) or `reset` (RST followed). A sender whose messages stay in its outgoing
-- about: queue is in many silent or refused ones; a scan is one host with many others. A lake has no such rows
-- position: 4
-- count: connections
SELECT
    src, dst, dst_port, count(*) AS connections, sum(attempts) AS segments,
    sum(CASE outcome WHEN 'silent' THEN 1 ELSE 0 END) AS silent,
    sum(CASE outcome WHEN 'refused' THEN 1 ELSE 0 END) AS refused,
    sum(CASE outcome WHEN 'established' THEN 1 ELSE 0 END) AS established,
    sum(CASE outcome WHEN 'closed' THEN 1 ELSE 0 END) AS closed,
    sum(CASE outcome WHEN 'reset' THEN 1 ELSE 0 END) AS reset,
    min(first_time_ns) AS first_seen, max(time_ns) AS last_seen, first_places(place) AS frames
FROM connections
GROUP BY src, dst, dst_port
ORDER BY connections DESC, frames[1], src, dst, dst_port
