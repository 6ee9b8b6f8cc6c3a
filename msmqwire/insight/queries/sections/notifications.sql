-- title: changes of which a machine was notified, and their judgement: whether they are applied, the rule if they are not,
-- title: and what captures do not show, so that a receiver may decide otherwise
-- about: changes of which a machine was notified, with their [judgement](sessions.md#the-judgement):
-- about: `applied` is false where a receiver must not apply the change, `rule` says why, and `unverified` what a
-- about: capture does not show, so that the receiver may not have applied it
-- position: 15
-- count: changes
SELECT
    dst AS machine, src AS sender, version, operation, object, outcome = 'applied' AS applied, rule, unverified,
    count(*) AS changes, min(time_ns) AS first_seen, max(time_ns) AS last_seen, first_places(place) AS frames
FROM notifications
GROUP BY dst, src, version, operation, object, outcome = 'applied', rule, unverified
ORDER BY changes DESC, frames[1], machine, sender, version, operation, object, applied, rule, unverified
