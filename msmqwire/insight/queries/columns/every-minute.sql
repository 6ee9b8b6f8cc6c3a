-- title: the begin of the minute, in nanoseconds since 1970
time_ns - (time_ns % 60000000000 + 60000000000) % 60000000000
