meta:
  id: msmq_notification
  title: MSMQ change notification, version 1 ([MS-MQCN] 2.2.4)
  license: Apache-2.0
  endian: le
  encoding: UTF-16LE
doc: |
  A peer of the benchmarks, written the way one writes a .ksy: messages of a directory service, with the
  PROPIDs that its updates have.
seq:
  - id: version
    type: u1
    valid: 1
  - id: num_updates
    type: u1
  - id: updates
    type: notification_update
    repeat: expr
    repeat-expr: num_updates
types:
  notification_update:
    seq:
      - id: command
        type: u1
        valid:
          max: 2
      - id: use_guid
        type: u1
        valid:
          max: 1
      - id: path_name
        type: strz
        if: use_guid == 0
      - id: guid_identifier
        size: 16
        if: use_guid == 1
      - id: guid_master_id
        size: 16
      - id: reserved
        size: 24
      - id: num_properties
        type: u1
      - id: property_ids
        type: u4
        repeat: expr
        repeat-expr: num_properties
      - id: property_values
        type:
          switch-on: property_ids[_index]
          cases:
            101: guid
            102: guid
            103: text
            104: u1
            105: u4
            106: s2
            107: u4
            108: text
            109: s4
            110: s4
            111: u1
            112: u4
            113: u1
            114: u1
            115: guid
            202: guid
            206: blob
            214: u4
            215: u4
            219: u1
            1101: blob
            1201: blob
            1403: u1
            1404: u1
        repeat: expr
        repeat-expr: num_properties
  guid:
    seq:
      - id: value
        size: 16
  text:
    seq:
      - id: value
        type: strz
  blob:
    seq:
      - id: len_value
        type: u4
      - id: value
        size: len_value
