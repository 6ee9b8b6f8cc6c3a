-- title: faults and violations, by rule
-- about: a fault or a violation, by rule and sender
-- position: 15
-- count: rows
WITH found AS (
    SELECT
        in_table, 'fault' AS problem, fault.code AS code, regexp_replace(fault.field, '\[\d+\]', '', 'g') AS field, src,
        time_ns, place
    FROM all_rows
    WHERE fault IS NOT NULL
    UNION ALL
    SELECT in_table, 'violation', unnest(violations), NULL, src, time_ns, place
    FROM all_rows
    WHERE len(violations) > 0
)
SELECT
    in_table, problem, code, field, src, count(*) AS rows, min(time_ns) AS first_seen, max(time_ns) AS last_seen,
    first_places(place) AS frames
FROM found
GROUP BY in_table, problem, code, field, src
ORDER BY rows DESC, frames[1], in_table, problem, code, field, src
