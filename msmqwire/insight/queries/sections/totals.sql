-- title: rows and faults of each table and file
-- about: a table of a file: its rows and faults
-- position: 1
-- count: rows
SELECT
    in_table, file, count(*) AS rows, count(fault) AS faults,
    min(time_ns) AS first_seen, max(time_ns) AS last_seen, first_places(place) AS frames
FROM all_rows
GROUP BY in_table, file
ORDER BY rows DESC, frames[1], in_table, file
