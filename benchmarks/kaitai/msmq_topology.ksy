meta:
  id: msmq_topology
  title: MSMQ directory discovery packet ([MS-MQSD] 2.2)
  license: Apache-2.0
  endian: le
  encoding: UTF-16LE
doc: |
  A peer of the benchmarks, written the way one writes a .ksy: every field of the IP form of a request and
  of a reply. The server list stays one text, since the language cannot split on a separator of two bytes.
seq:
  - id: version
    type: u1
  - id: type
    type: u1
    enum: packet_type
  - id: reserved
    type: u2
  - id: body
    type:
      switch-on: type
      cases:
        'packet_type::request': client_request
        'packet_type::reply': server_reply
types:
  client_request:
    seq:
      - id: enterprise_id
        size: 16
      - id: request_id
        size: 16
      - id: site_id
        size: 16
  server_reply:
    seq:
      - id: correlation_id
        size: 16
      - id: connected_network_count
        type: u4
        valid:
          min: 1
          max: 32
      - id: connected_network_mask
        type: u4
      - id: len_servers
        type: u4
      - id: connected_networks
        size: 16
        repeat: expr
        repeat-expr: connected_network_count
      - id: responding_site_id
        size: 16
        if: len_servers != 0
      - id: servers
        type: str
        size: len_servers
        if: len_servers != 0
enums:
  packet_type:
    1: request
    2: reply
