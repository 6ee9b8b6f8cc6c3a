# This is a generated file! Please edit source .ksy file and use kaitai-struct-compiler to rebuild
# type: ignore  # written without types

import kaitaistruct
from kaitaistruct import KaitaiStruct, KaitaiStream, BytesIO
from enum import IntEnum


if getattr(kaitaistruct, 'API_VERSION', (0, 9)) < (0, 11):
    raise Exception("Incompatible Kaitai Struct Python API: 0.11 or later is required, but you have %s" % (kaitaistruct.__version__))

class MsmqTopology(KaitaiStruct):
    """A peer of the benchmarks, written the way one writes a .ksy: every field of the IP form of a request and
    of a reply. The server list stays one text, since the language cannot split on a separator of two bytes.
    """

    class PacketType(IntEnum):
        request = 1
        reply = 2
    def __init__(self, _io, _parent=None, _root=None):
        super(MsmqTopology, self).__init__(_io)
        self._parent = _parent
        self._root = _root or self
        self._read()

    def _read(self):
        self.version = self._io.read_u1()
        self.type = KaitaiStream.resolve_enum(MsmqTopology.PacketType, self._io.read_u1())
        self.reserved = self._io.read_u2le()
        _on = self.type
        if _on == MsmqTopology.PacketType.reply:
            pass
            self.body = MsmqTopology.ServerReply(self._io, self, self._root)
        elif _on == MsmqTopology.PacketType.request:
            pass
            self.body = MsmqTopology.ClientRequest(self._io, self, self._root)


    def _fetch_instances(self):
        pass
        _on = self.type
        if _on == MsmqTopology.PacketType.reply:
            pass
            self.body._fetch_instances()
        elif _on == MsmqTopology.PacketType.request:
            pass
            self.body._fetch_instances()

    class ClientRequest(KaitaiStruct):
        def __init__(self, _io, _parent=None, _root=None):
            super(MsmqTopology.ClientRequest, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self._read()

        def _read(self):
            self.enterprise_id = self._io.read_bytes(16)
            self.request_id = self._io.read_bytes(16)
            self.site_id = self._io.read_bytes(16)


        def _fetch_instances(self):
            pass


    class ServerReply(KaitaiStruct):
        def __init__(self, _io, _parent=None, _root=None):
            super(MsmqTopology.ServerReply, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self._read()

        def _read(self):
            self.correlation_id = self._io.read_bytes(16)
            self.connected_network_count = self._io.read_u4le()
            if not self.connected_network_count >= 1:
                raise kaitaistruct.ValidationLessThanError(1, self.connected_network_count, self._io, u"/types/server_reply/seq/1")
            if not self.connected_network_count <= 32:
                raise kaitaistruct.ValidationGreaterThanError(32, self.connected_network_count, self._io, u"/types/server_reply/seq/1")
            self.connected_network_mask = self._io.read_u4le()
            self.len_servers = self._io.read_u4le()
            self.connected_networks = []
            for i in range(self.connected_network_count):
                self.connected_networks.append(self._io.read_bytes(16))

            if self.len_servers != 0:
                pass
                self.responding_site_id = self._io.read_bytes(16)

            if self.len_servers != 0:
                pass
                self.servers = (self._io.read_bytes(self.len_servers)).decode(u"UTF-16LE")



        def _fetch_instances(self):
            pass
            for i in range(len(self.connected_networks)):
                pass

            if self.len_servers != 0:
                pass

            if self.len_servers != 0:
                pass




