-- title: messages to a queue that asked for acknowledgments: how many were answered, and after how many milliseconds
-- about: messages to a queue that asked for acknowledgments. `unanswered` asked for a positive one and have none in the
-- about: captures, which may have been sent elsewhere or later; `negative` have a negative one; `repeated` were sent more
-- about: than once. The milliseconds are those from a message to its first acknowledgment: of the fastest one, of the
-- about: fastest 50, 90 and 99 of a hundred, and of the slowest
-- position: 9
-- count: asked
-- line: {asked} asked for acknowledgments, {unanswered} never answered in these captures
WITH answered AS (
    SELECT
        queue, answers, negative, asked, copies, first_ns, last_ns, place,
        least(reached_ns, received_ns, ordered_ns, negative_ns) - first_ns AS latency
    FROM asked_messages
),
timed AS (
    SELECT
        queue, answers, negative, asked, copies, first_ns, last_ns, place,
        CASE WHEN latency >= 0 THEN latency END AS latency
    FROM answered
),
ranked AS (
    SELECT
        queue, answers, negative, asked, copies, first_ns, last_ns, place, latency,
        row_number() OVER (PARTITION BY queue ORDER BY latency NULLS LAST, place) AS number,
        count(latency) OVER (PARTITION BY queue) AS total
    FROM timed
)
SELECT
    queue, count(*) AS asked, sum(CASE WHEN answers > 0 OR negative IS NOT NULL THEN 1 ELSE 0 END) AS answered,
    sum(CASE WHEN answers = 0 AND negative IS NULL AND asked & 19 > 0 THEN 1 ELSE 0 END) AS unanswered,
    count(negative) AS negative, sum(CASE WHEN copies > 1 THEN 1 ELSE 0 END) AS repeated,
    min(latency) / 1000000 AS fastest_ms,
    min(CASE WHEN number * 100 >= total * 50 THEN latency END) / 1000000 AS median_ms,
    min(CASE WHEN number * 100 >= total * 90 THEN latency END) / 1000000 AS p90_ms,
    min(CASE WHEN number * 100 >= total * 99 THEN latency END) / 1000000 AS p99_ms,
    max(latency) / 1000000 AS slowest_ms, min(first_ns) AS first_seen, max(last_ns) AS last_seen,
    first_places(place) AS frames
FROM ranked
GROUP BY queue
ORDER BY asked DESC, frames[1], queue
