-- title: the queue manager at the sender: of a ping, or of its side of the connection; not of probes
-- A scanner that sends the packet of [MS-MQQB] 4.1 is no queue manager, and a server that repeats it has another GUID
CASE
    WHEN client_guid = '557358d1-9150-9595-4997-b6e611ea26c6' AND time_stamp = 501140046 THEN NULL
    ELSE
        nullif(
            coalesce(
                queue_manager,
                CASE WHEN src_port = 1801 THEN server_guid WHEN src_port IS NOT NULL THEN client_guid END
            ),
            '00000000-0000-0000-0000-000000000000'
        )
END
