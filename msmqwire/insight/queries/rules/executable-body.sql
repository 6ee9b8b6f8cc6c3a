-- title: body that is a program of Windows or Linux, or a script with its interpreter
-- severity: medium
-- reference: CWE-494
-- source: the headers of PE and ELF files, and the first line of scripts
-- about: a body that begins with the headers of a program (`kind` is `pe` or `elf`), or with `#!` and the path of an
-- about: interpreter (`script`)
-- evidence: src, dst, queue, kind
-- sid: 1801011
-- category: Executable code was detected
-- transport: TCP
SELECT src, src_port, dst, dst_port, destination_queue AS queue, executable AS kind, place, time_ns
FROM messages
WHERE executable IS NOT NULL
