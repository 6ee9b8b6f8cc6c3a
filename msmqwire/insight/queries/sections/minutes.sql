-- title: rows and faults of each table in each minute
-- about: a table in a minute: its rows and faults, in the order of time
-- position: 17
-- count: rows
SELECT
    minute, in_table, count(*) AS rows, count(fault) AS faults, min(time_ns) AS first_seen, max(time_ns) AS last_seen,
    first_places(place) AS frames
FROM all_rows
WHERE minute IS NOT NULL
GROUP BY minute, in_table
ORDER BY minute, in_table
