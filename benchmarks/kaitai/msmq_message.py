# This is a generated file! Please edit source .ksy file and use kaitai-struct-compiler to rebuild
# type: ignore  # written without types

import kaitaistruct
from kaitaistruct import KaitaiStruct, KaitaiStream, BytesIO


if getattr(kaitaistruct, 'API_VERSION', (0, 9)) < (0, 11):
    raise Exception("Incompatible Kaitai Struct Python API: 0.11 or later is required, but you have %s" % (kaitaistruct.__version__))

class MsmqMessage(KaitaiStruct):
    """A peer of the benchmarks, written the way one writes a .ksy: the headers that the messages of the workload have, with
    destinations that are private, public or direct and no other queues.
    """
    def __init__(self, _io, _parent=None, _root=None):
        super(MsmqMessage, self).__init__(_io)
        self._parent = _parent
        self._root = _root or self
        self._read()

    def _read(self):
        self.version_number = self._io.read_u1()
        if not self.version_number == 16:
            raise kaitaistruct.ValidationNotEqualError(16, self.version_number, self._io, u"/seq/0")
        self.reserved = self._io.read_u1()
        self.flags = self._io.read_u2le()
        self.signature = self._io.read_bytes(4)
        if not self.signature == b"\x4C\x49\x4F\x52":
            raise kaitaistruct.ValidationNotEqualError(b"\x4C\x49\x4F\x52", self.signature, self._io, u"/seq/3")
        self.packet_size = self._io.read_u4le()
        self.time_to_reach_queue = self._io.read_u4le()
        self.user = MsmqMessage.UserHeader(self._io, self, self._root)
        if self.user.flags & 1048576 != 0:
            pass
            self.transaction = MsmqMessage.TransactionHeader(self._io, self, self._root)

        if self.user.flags & 524288 != 0:
            pass
            self.security = MsmqMessage.SecurityHeader(self._io, self, self._root)

        self.properties = MsmqMessage.MessagePropertiesHeader(self._io, self, self._root)


    def _fetch_instances(self):
        pass
        self.user._fetch_instances()
        if self.user.flags & 1048576 != 0:
            pass
            self.transaction._fetch_instances()

        if self.user.flags & 524288 != 0:
            pass
            self.security._fetch_instances()

        self.properties._fetch_instances()

    class DirectName(KaitaiStruct):
        def __init__(self, _io, _parent=None, _root=None):
            super(MsmqMessage.DirectName, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self._read()

        def _read(self):
            self.count = self._io.read_u2le()
            self.value = self._io.read_bytes(self.count - 2)
            self.terminator = self._io.read_u2le()
            self.padding = self._io.read_bytes((4 - (self.count + 2) % 4) % 4)


        def _fetch_instances(self):
            pass


    class MessagePropertiesHeader(KaitaiStruct):
        def __init__(self, _io, _parent=None, _root=None):
            super(MsmqMessage.MessagePropertiesHeader, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self._read()

        def _read(self):
            self.flags = self._io.read_u1()
            self.label_length = self._io.read_u1()
            self.message_class = self._io.read_u2le()
            self.correlation_id = self._io.read_bytes(20)
            self.body_type = self._io.read_u4le()
            self.application_tag = self._io.read_u4le()
            self.message_size = self._io.read_u4le()
            self.allocation_body_size = self._io.read_u4le()
            self.privacy_level = self._io.read_u4le()
            self.hash_algorithm = self._io.read_u4le()
            self.encryption_algorithm = self._io.read_u4le()
            self.extension_size = self._io.read_u4le()
            self.label = (self._io.read_bytes(self.label_length * 2)).decode(u"UTF-16LE")
            self.extension_data = self._io.read_bytes(self.extension_size)
            self.message_body = self._io.read_bytes(self.message_size)


        def _fetch_instances(self):
            pass


    class PrivateName(KaitaiStruct):
        def __init__(self, _io, _parent=None, _root=None):
            super(MsmqMessage.PrivateName, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self._read()

        def _read(self):
            self.value = self._io.read_bytes(4)


        def _fetch_instances(self):
            pass


    class PublicName(KaitaiStruct):
        def __init__(self, _io, _parent=None, _root=None):
            super(MsmqMessage.PublicName, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self._read()

        def _read(self):
            self.value = self._io.read_bytes(16)


        def _fetch_instances(self):
            pass


    class SecurityHeader(KaitaiStruct):
        def __init__(self, _io, _parent=None, _root=None):
            super(MsmqMessage.SecurityHeader, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self._read()

        def _read(self):
            self.flags = self._io.read_u2le()
            self.sender_id_size = self._io.read_u2le()
            self.encryption_key_size = self._io.read_u2le()
            self.signature_size = self._io.read_u2le()
            self.sender_cert_size = self._io.read_u4le()
            self.provider_info_size = self._io.read_u4le()
            self.security_id = self._io.read_bytes(self.sender_id_size)
            self.padding = self._io.read_bytes((4 - self.sender_id_size % 4) % 4)


        def _fetch_instances(self):
            pass


    class TransactionHeader(KaitaiStruct):
        def __init__(self, _io, _parent=None, _root=None):
            super(MsmqMessage.TransactionHeader, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self._read()

        def _read(self):
            self.flags = self._io.read_u4le()
            self.tx_sequence_id = self._io.read_u8le()
            self.tx_sequence_number = self._io.read_u4le()
            self.previous_tx_sequence_number = self._io.read_u4le()


        def _fetch_instances(self):
            pass


    class UserHeader(KaitaiStruct):
        def __init__(self, _io, _parent=None, _root=None):
            super(MsmqMessage.UserHeader, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self._read()

        def _read(self):
            self.source_queue_manager = self._io.read_bytes(16)
            self.queue_manager_address = self._io.read_bytes(16)
            self.time_to_be_received = self._io.read_u4le()
            self.sent_time = self._io.read_u4le()
            self.message_id = self._io.read_u4le()
            self.flags = self._io.read_u4le()
            _on = self.flags >> 10 & 7
            if _on == 3:
                pass
                self.destination_queue = MsmqMessage.PrivateName(self._io, self, self._root)
            elif _on == 5:
                pass
                self.destination_queue = MsmqMessage.PublicName(self._io, self, self._root)
            elif _on == 7:
                pass
                self.destination_queue = MsmqMessage.DirectName(self._io, self, self._root)


        def _fetch_instances(self):
            pass
            _on = self.flags >> 10 & 7
            if _on == 3:
                pass
                self.destination_queue._fetch_instances()
            elif _on == 5:
                pass
                self.destination_queue._fetch_instances()
            elif _on == 7:
                pass
                self.destination_queue._fetch_instances()



