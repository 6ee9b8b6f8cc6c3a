-- title: text with which a .NET program that deserializes it runs code of its sender, or reads files for it
-- severity: medium
-- reference: CWE-502
-- source: ysoserial.net: Formatters and Generators; https://learn.microsoft.com/dotnet/fundamentals/code-analysis/quality-rules/ca3075
-- about: a body or an ExtensionData of SoapFormatter, of LosFormatter with an object, of Json.NET with a `$type` that is known
-- about: to run code, or XML with a DOCTYPE; `kind` says which. The `$type` of another class is no finding
-- evidence: src, dst, queue, kind
-- sid: 1801014
-- category: Potentially Bad Traffic
-- transport: TCP
SELECT src, src_port, dst, dst_port, destination_queue AS queue, deserialized AS kind, place, time_ns
FROM messages
WHERE deserialized <> 'binary_formatter'
