-- title: the time in microseconds
make_timestamptz(time_ns // 1000)
