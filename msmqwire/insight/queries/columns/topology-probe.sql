-- title: the rule that finds a valid packet of a scanner
CASE
    WHEN enterprise_id = 'e6eaba61-d1c6-11db-baac-0003ff4e2d22' AND request_id = 'f291a103-e33c-ab4f-a930-be3a33e432dd'
        AND site_id = 'dcc51bf6-d4ad-4543-8739-71568e8f9128' AND NOT regexp_matches(dst, '\.255$|^ff')
        THEN 'discovery-probe'
END
