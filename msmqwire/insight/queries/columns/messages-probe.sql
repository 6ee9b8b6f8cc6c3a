-- title: the rule that finds a valid packet of a scanner
CASE WHEN label = 'poc' AND ends_with(destination_queue, '/queuejumper') THEN 'metasploit-probe' END
