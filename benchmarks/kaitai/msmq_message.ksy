meta:
  id: msmq_message
  title: MSMQ UserMessage packet ([MS-MQMQ] 2.2.20)
  license: Apache-2.0
  endian: le
  encoding: UTF-16LE
doc: |
  A peer of the benchmarks, written the way one writes a .ksy: the headers that the messages of the workload have, with
  destinations that are private, public or direct and no other queues.
seq:
  - id: version_number
    type: u1
    valid: 0x10
  - id: reserved
    type: u1
  - id: flags
    type: u2
  - id: signature
    contents: LIOR
  - id: packet_size
    type: u4
  - id: time_to_reach_queue
    type: u4
  - id: user
    type: user_header
  - id: transaction
    type: transaction_header
    if: user.flags & 0x100000 != 0
  - id: security
    type: security_header
    if: user.flags & 0x80000 != 0
  - id: properties
    type: message_properties_header
types:
  user_header:
    seq:
      - id: source_queue_manager
        size: 16
      - id: queue_manager_address
        size: 16
      - id: time_to_be_received
        type: u4
      - id: sent_time
        type: u4
      - id: message_id
        type: u4
      - id: flags
        type: u4
      - id: destination_queue
        type:
          switch-on: (flags >> 10) & 7
          cases:
            3: private_name
            5: public_name
            7: direct_name
  private_name:
    seq:
      - id: value
        size: 4
  public_name:
    seq:
      - id: value
        size: 16
  direct_name:
    seq:
      - id: count
        type: u2
      - id: value
        size: count - 2
      - id: terminator
        type: u2
      - id: padding
        size: (4 - (count + 2) % 4) % 4
  transaction_header:
    seq:
      - id: flags
        type: u4
      - id: tx_sequence_id
        type: u8
      - id: tx_sequence_number
        type: u4
      - id: previous_tx_sequence_number
        type: u4
  security_header:
    seq:
      - id: flags
        type: u2
      - id: sender_id_size
        type: u2
      - id: encryption_key_size
        type: u2
      - id: signature_size
        type: u2
      - id: sender_cert_size
        type: u4
      - id: provider_info_size
        type: u4
      - id: security_id
        size: sender_id_size
      - id: padding
        size: (4 - sender_id_size % 4) % 4
  message_properties_header:
    seq:
      - id: flags
        type: u1
      - id: label_length
        type: u1
      - id: message_class
        type: u2
      - id: correlation_id
        size: 20
      - id: body_type
        type: u4
      - id: application_tag
        type: u4
      - id: message_size
        type: u4
      - id: allocation_body_size
        type: u4
      - id: privacy_level
        type: u4
      - id: hash_algorithm
        type: u4
      - id: encryption_algorithm
        type: u4
      - id: extension_size
        type: u4
      - id: label
        type: str
        size: label_length * 2
      - id: extension_data
        size: extension_size
      - id: message_body
        size: message_size
