-- title: the queue manager at the sender: of messages that no routing server has processed, without probes
CASE
    WHEN hop_count = 0 AND source_queue_manager <> '00000000-0000-0000-0000-000000000000' AND probe IS NULL
        THEN source_queue_manager
END
