-- title: the sender is the server of the connection: it has port 1801, or if neither side has, the lower
coalesce(dst_port <> 1801 AND (src_port = 1801 OR src_port < dst_port), false)
