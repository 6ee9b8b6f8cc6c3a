# This is a generated file! Please edit source .ksy file and use kaitai-struct-compiler to rebuild
# type: ignore  # written without types

import kaitaistruct
from kaitaistruct import KaitaiStruct, KaitaiStream, BytesIO


if getattr(kaitaistruct, 'API_VERSION', (0, 9)) < (0, 11):
    raise Exception("Incompatible Kaitai Struct Python API: 0.11 or later is required, but you have %s" % (kaitaistruct.__version__))

class MsmqMessages(KaitaiStruct):
    def __init__(self, _io, _parent=None, _root=None):
        super(MsmqMessages, self).__init__(_io)
        self._parent = _parent
        self._root = _root or self
        self._read()

    def _read(self):
        self.version = self._io.read_u1()
        self.baseheader_reserved = self._io.read_u1()
        self.base_flags = self._io.read_u2le()
        self.signature_2 = self._io.read_u4le()
        self.packet_size = self._io.read_u4le()
        self.time_to_reach_queue = self._io.read_u4le()
        self.source_queue_manager = self._io.read_bytes(16)
        self.queue_manager_address = self._io.read_bytes(16)
        self.time_to_be_received = self._io.read_u4le()
        self.sent = self._io.read_u4le()
        self.message_id = self._io.read_u4le()
        self.user_flags = self._io.read_u4le()
        if  ((self.user_flags >> 10 & 7 == 5) or (self.user_flags >> 10 & 7 == 6)) :
            pass
            self.destinationqueue_guid = self._io.read_bytes(16)

        if  ((self.user_flags >> 10 & 7 == 2) or (self.user_flags >> 10 & 7 == 3) or (self.user_flags >> 10 & 7 == 4) or (self.user_flags >> 10 & 7 == 6)) :
            pass
            self.destinationqueue_number = self._io.read_u4le()

        if self.user_flags >> 10 & 7 == 7:
            pass
            self.destination_count = self._io.read_u2le()

        if self.user_flags >> 10 & 7 == 7:
            pass
            self.destinationqueue_name = self._io.read_bytes(self.destination_count)

        if self.user_flags >> 10 & 7 == 7:
            pass
            self.destinationqueue_padding = self._io.read_bytes(((4 - self._io.pos() % 4) % 4 if (4 - self._io.pos() % 4) % 4 < self.packet_size - self._io.pos() else self.packet_size - self._io.pos()))

        if  ((self.user_flags >> 13 & 7 == 5) or (self.user_flags >> 13 & 7 == 6)) :
            pass
            self.adminqueue_guid = self._io.read_bytes(16)

        if  ((self.user_flags >> 13 & 7 == 2) or (self.user_flags >> 13 & 7 == 3) or (self.user_flags >> 13 & 7 == 4) or (self.user_flags >> 13 & 7 == 6)) :
            pass
            self.adminqueue_number = self._io.read_u4le()

        if self.user_flags >> 13 & 7 == 7:
            pass
            self.admin_count = self._io.read_u2le()

        if self.user_flags >> 13 & 7 == 7:
            pass
            self.adminqueue_name = self._io.read_bytes(self.admin_count)

        if self.user_flags >> 13 & 7 == 7:
            pass
            self.adminqueue_padding = self._io.read_bytes(((4 - self._io.pos() % 4) % 4 if (4 - self._io.pos() % 4) % 4 < self.packet_size - self._io.pos() else self.packet_size - self._io.pos()))

        if  ((self.user_flags >> 16 & 7 == 5) or (self.user_flags >> 16 & 7 == 6)) :
            pass
            self.responsequeue_guid = self._io.read_bytes(16)

        if  ((self.user_flags >> 16 & 7 == 2) or (self.user_flags >> 16 & 7 == 3) or (self.user_flags >> 16 & 7 == 4) or (self.user_flags >> 16 & 7 == 6)) :
            pass
            self.responsequeue_number = self._io.read_u4le()

        if self.user_flags >> 16 & 7 == 7:
            pass
            self.response_count = self._io.read_u2le()

        if self.user_flags >> 16 & 7 == 7:
            pass
            self.responsequeue_name = self._io.read_bytes(self.response_count)

        if self.user_flags >> 16 & 7 == 7:
            pass
            self.responsequeue_padding = self._io.read_bytes(((4 - self._io.pos() % 4) % 4 if (4 - self._io.pos() % 4) % 4 < self.packet_size - self._io.pos() else self.packet_size - self._io.pos()))

        if self.user_flags & 4194304 != 0:
            pass
            self.connector_type = self._io.read_bytes(16)

        if self.user_flags & 1048576 != 0:
            pass
            self.transaction_flags = self._io.read_u4le()

        if self.user_flags & 1048576 != 0:
            pass
            self.tx_sequence_id = self._io.read_u8le()

        if self.user_flags & 1048576 != 0:
            pass
            self.tx_sequence_number = self._io.read_u4le()

        if self.user_flags & 1048576 != 0:
            pass
            self.previous_tx_sequence_number = self._io.read_u4le()

        if  ((self.user_flags & 1048576 != 0) and (self.transaction_flags & 1 != 0)) :
            pass
            self.connector_queue_manager = self._io.read_bytes(16)

        if self.user_flags & 524288 != 0:
            pass
            self.security_flags = self._io.read_u2le()

        if self.user_flags & 524288 != 0:
            pass
            self.security_id_size = self._io.read_u2le()

        if self.user_flags & 524288 != 0:
            pass
            self.encryption_key_size = self._io.read_u2le()

        if self.user_flags & 524288 != 0:
            pass
            self.signature_size = self._io.read_u2le()

        if self.user_flags & 524288 != 0:
            pass
            self.sender_cert_size = self._io.read_u4le()

        if self.user_flags & 524288 != 0:
            pass
            self.provider_info_size = self._io.read_u4le()

        if  ((self.user_flags & 524288 != 0) and (self.security_id_size > 0)) :
            pass
            self.security_id = self._io.read_bytes(self.security_id_size)

        if  ((self.user_flags & 524288 != 0) and (self.security_id_size > 0)) :
            pass
            self.securityid_padding = self._io.read_bytes(((4 - self._io.pos() % 4) % 4 if (4 - self._io.pos() % 4) % 4 < self.packet_size - self._io.pos() else self.packet_size - self._io.pos()))

        if  ((self.user_flags & 524288 != 0) and (self.encryption_key_size > 0)) :
            pass
            self.encryption_key = self._io.read_bytes(self.encryption_key_size)

        if  ((self.user_flags & 524288 != 0) and (self.encryption_key_size > 0)) :
            pass
            self.encryptionkey_padding = self._io.read_bytes(((4 - self._io.pos() % 4) % 4 if (4 - self._io.pos() % 4) % 4 < self.packet_size - self._io.pos() else self.packet_size - self._io.pos()))

        if  ((self.user_flags & 524288 != 0) and (self.signature_size > 0)) :
            pass
            self.signature = self._io.read_bytes(self.signature_size)

        if  ((self.user_flags & 524288 != 0) and (self.signature_size > 0)) :
            pass
            self.securitydata_signature_padding = self._io.read_bytes(((4 - self._io.pos() % 4) % 4 if (4 - self._io.pos() % 4) % 4 < self.packet_size - self._io.pos() else self.packet_size - self._io.pos()))

        if  ((self.user_flags & 524288 != 0) and (self.sender_cert_size > 0)) :
            pass
            self.sender_certificate = self._io.read_bytes(self.sender_cert_size)

        if  ((self.user_flags & 524288 != 0) and (self.sender_cert_size > 0)) :
            pass
            self.sendercert_padding = self._io.read_bytes(((4 - self._io.pos() % 4) % 4 if (4 - self._io.pos() % 4) % 4 < self.packet_size - self._io.pos() else self.packet_size - self._io.pos()))

        if  ((self.user_flags & 524288 != 0) and (self.provider_info_size > 0)) :
            pass
            self.provider_info = self._io.read_bytes(self.provider_info_size)

        if  ((self.user_flags & 524288 != 0) and (self.provider_info_size > 0)) :
            pass
            self.providerinfo_padding = self._io.read_bytes(((4 - self._io.pos() % 4) % 4 if (4 - self._io.pos() % 4) % 4 < self.packet_size - self._io.pos() else self.packet_size - self._io.pos()))

        if self.user_flags & 2097152 != 0:
            pass
            self.properties_flags = self._io.read_u1()

        if self.user_flags & 2097152 != 0:
            pass
            self.label_length = self._io.read_u1()

        if self.user_flags & 2097152 != 0:
            pass
            self.message_class = self._io.read_u2le()

        if self.user_flags & 2097152 != 0:
            pass
            self.correlation_guid = self._io.read_bytes(16)

        if self.user_flags & 2097152 != 0:
            pass
            self.correlation_ordinal = self._io.read_u4le()

        if self.user_flags & 2097152 != 0:
            pass
            self.body_type = self._io.read_u4le()

        if self.user_flags & 2097152 != 0:
            pass
            self.application_tag = self._io.read_u4le()

        if self.user_flags & 2097152 != 0:
            pass
            self.message_size = self._io.read_u4le()

        if self.user_flags & 2097152 != 0:
            pass
            self.allocation_body_size = self._io.read_u4le()

        if self.user_flags & 2097152 != 0:
            pass
            self.privacy_level = self._io.read_u4le()

        if self.user_flags & 2097152 != 0:
            pass
            self.hash_algorithm = self._io.read_u4le()

        if self.user_flags & 2097152 != 0:
            pass
            self.encryption_algorithm = self._io.read_u4le()

        if self.user_flags & 2097152 != 0:
            pass
            self.extension_size = self._io.read_u4le()

        if self.user_flags & 2097152 != 0:
            pass
            self.label = self._io.read_bytes(self.label_length * 2)

        if self.user_flags & 2097152 != 0:
            pass
            self.extension_data = self._io.read_bytes(self.extension_size)

        if self.user_flags & 2097152 != 0:
            pass
            self.body = self._io.read_bytes(self.message_size)

        if self._io.pos() < self.packet_size:
            pass
            self.messagepropertiesheader_padding = self._io.read_bytes(((4 - self._io.pos() % 4) % 4 if (4 - self._io.pos() % 4) % 4 < self.packet_size - self._io.pos() else self.packet_size - self._io.pos()))

        if self.base_flags & 32 != 0:
            pass
            self.debug_flags = self._io.read_u2le()

        if self.base_flags & 32 != 0:
            pass
            self.debugheader_reserved = self._io.read_u2le()

        if  ((self.base_flags & 32 != 0) and (self.debug_flags >> 0 & 3 == 1)) :
            pass
            self.debug_queue = self._io.read_bytes(16)

        if self._io.pos() < self.packet_size:
            pass
            self.further_headers = self._io.read_bytes(self.packet_size - self._io.pos())

        if self.base_flags & 16 != 0:
            pass
            self.ack_sequence_number = self._io.read_u2le()

        if self.base_flags & 16 != 0:
            pass
            self.recoverable_msg_ack_seq_number = self._io.read_u2le()

        if self.base_flags & 16 != 0:
            pass
            self.recoverable_msg_ack_flags = self._io.read_u4le()

        if self.base_flags & 16 != 0:
            pass
            self.user_msg_sequence_number = self._io.read_u2le()

        if self.base_flags & 16 != 0:
            pass
            self.recoverable_msg_seq_number = self._io.read_u2le()

        if self.base_flags & 16 != 0:
            pass
            self.window_size = self._io.read_u2le()

        if self.base_flags & 16 != 0:
            pass
            self.sessionheader_reserved = self._io.read_u2le()



    def _fetch_instances(self):
        pass
        if  ((self.user_flags >> 10 & 7 == 5) or (self.user_flags >> 10 & 7 == 6)) :
            pass

        if  ((self.user_flags >> 10 & 7 == 2) or (self.user_flags >> 10 & 7 == 3) or (self.user_flags >> 10 & 7 == 4) or (self.user_flags >> 10 & 7 == 6)) :
            pass

        if self.user_flags >> 10 & 7 == 7:
            pass

        if self.user_flags >> 10 & 7 == 7:
            pass

        if self.user_flags >> 10 & 7 == 7:
            pass

        if  ((self.user_flags >> 13 & 7 == 5) or (self.user_flags >> 13 & 7 == 6)) :
            pass

        if  ((self.user_flags >> 13 & 7 == 2) or (self.user_flags >> 13 & 7 == 3) or (self.user_flags >> 13 & 7 == 4) or (self.user_flags >> 13 & 7 == 6)) :
            pass

        if self.user_flags >> 13 & 7 == 7:
            pass

        if self.user_flags >> 13 & 7 == 7:
            pass

        if self.user_flags >> 13 & 7 == 7:
            pass

        if  ((self.user_flags >> 16 & 7 == 5) or (self.user_flags >> 16 & 7 == 6)) :
            pass

        if  ((self.user_flags >> 16 & 7 == 2) or (self.user_flags >> 16 & 7 == 3) or (self.user_flags >> 16 & 7 == 4) or (self.user_flags >> 16 & 7 == 6)) :
            pass

        if self.user_flags >> 16 & 7 == 7:
            pass

        if self.user_flags >> 16 & 7 == 7:
            pass

        if self.user_flags >> 16 & 7 == 7:
            pass

        if self.user_flags & 4194304 != 0:
            pass

        if self.user_flags & 1048576 != 0:
            pass

        if self.user_flags & 1048576 != 0:
            pass

        if self.user_flags & 1048576 != 0:
            pass

        if self.user_flags & 1048576 != 0:
            pass

        if  ((self.user_flags & 1048576 != 0) and (self.transaction_flags & 1 != 0)) :
            pass

        if self.user_flags & 524288 != 0:
            pass

        if self.user_flags & 524288 != 0:
            pass

        if self.user_flags & 524288 != 0:
            pass

        if self.user_flags & 524288 != 0:
            pass

        if self.user_flags & 524288 != 0:
            pass

        if self.user_flags & 524288 != 0:
            pass

        if  ((self.user_flags & 524288 != 0) and (self.security_id_size > 0)) :
            pass

        if  ((self.user_flags & 524288 != 0) and (self.security_id_size > 0)) :
            pass

        if  ((self.user_flags & 524288 != 0) and (self.encryption_key_size > 0)) :
            pass

        if  ((self.user_flags & 524288 != 0) and (self.encryption_key_size > 0)) :
            pass

        if  ((self.user_flags & 524288 != 0) and (self.signature_size > 0)) :
            pass

        if  ((self.user_flags & 524288 != 0) and (self.signature_size > 0)) :
            pass

        if  ((self.user_flags & 524288 != 0) and (self.sender_cert_size > 0)) :
            pass

        if  ((self.user_flags & 524288 != 0) and (self.sender_cert_size > 0)) :
            pass

        if  ((self.user_flags & 524288 != 0) and (self.provider_info_size > 0)) :
            pass

        if  ((self.user_flags & 524288 != 0) and (self.provider_info_size > 0)) :
            pass

        if self.user_flags & 2097152 != 0:
            pass

        if self.user_flags & 2097152 != 0:
            pass

        if self.user_flags & 2097152 != 0:
            pass

        if self.user_flags & 2097152 != 0:
            pass

        if self.user_flags & 2097152 != 0:
            pass

        if self.user_flags & 2097152 != 0:
            pass

        if self.user_flags & 2097152 != 0:
            pass

        if self.user_flags & 2097152 != 0:
            pass

        if self.user_flags & 2097152 != 0:
            pass

        if self.user_flags & 2097152 != 0:
            pass

        if self.user_flags & 2097152 != 0:
            pass

        if self.user_flags & 2097152 != 0:
            pass

        if self.user_flags & 2097152 != 0:
            pass

        if self.user_flags & 2097152 != 0:
            pass

        if self.user_flags & 2097152 != 0:
            pass

        if self.user_flags & 2097152 != 0:
            pass

        if self._io.pos() < self.packet_size:
            pass

        if self.base_flags & 32 != 0:
            pass

        if self.base_flags & 32 != 0:
            pass

        if  ((self.base_flags & 32 != 0) and (self.debug_flags >> 0 & 3 == 1)) :
            pass

        if self._io.pos() < self.packet_size:
            pass

        if self.base_flags & 16 != 0:
            pass

        if self.base_flags & 16 != 0:
            pass

        if self.base_flags & 16 != 0:
            pass

        if self.base_flags & 16 != 0:
            pass

        if self.base_flags & 16 != 0:
            pass

        if self.base_flags & 16 != 0:
            pass

        if self.base_flags & 16 != 0:
            pass



