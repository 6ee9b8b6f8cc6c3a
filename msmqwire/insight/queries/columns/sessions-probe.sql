-- title: the rule that finds a valid packet of a scanner
-- The packet of [MS-MQQB] 4.1
CASE
    WHEN time_stamp = 501140046 AND operating_system = 784 AND client_guid = '557358d1-9150-9595-4997-b6e611ea26c6'
        AND server_guid = '43cd8907-394c-8f11-4445-9078909ea0fc' AND NOT from_server
        THEN 'connection-probe'
END
