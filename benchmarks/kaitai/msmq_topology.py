# This is a generated file! Please edit source .ksy file and use kaitai-struct-compiler to rebuild
# type: ignore  # written without types

import kaitaistruct
from kaitaistruct import KaitaiStruct, KaitaiStream, BytesIO


if getattr(kaitaistruct, 'API_VERSION', (0, 9)) < (0, 11):
    raise Exception("Incompatible Kaitai Struct Python API: 0.11 or later is required, but you have %s" % (kaitaistruct.__version__))

class MsmqTopology(KaitaiStruct):
    def __init__(self, _io, _parent=None, _root=None):
        super(MsmqTopology, self).__init__(_io)
        self._parent = _parent
        self._root = _root or self
        self._read()

    def _read(self):
        self.version = self._io.read_u1()
        self.type = self._io.read_u1()
        self.reserved = self._io.read_u2le()
        if self.type == 1:
            pass
            self.enterprise_id = self._io.read_bytes(16)

        if self.type == 1:
            pass
            self.request_id = self._io.read_bytes(16)

        if self.type == 1:
            pass
            self.site_id = self._io.read_bytes(16)

        if  ((self.type == 1) and (self._io.size() - self._io.pos() > 0)) :
            pass
            self.ipx_fields = self._io.read_bytes(self._io.size() - self._io.pos())

        if self.type == 2:
            pass
            self.correlation_id = self._io.read_bytes(16)

        if self.type == 2:
            pass
            self.count = self._io.read_u4le()

        if self.type == 2:
            pass
            self.connected_network_mask = self._io.read_u4le()

        if self.type == 2:
            pass
            self.size = self._io.read_u4le()

        if self.type == 2:
            pass
            self.connectednetworkarray = self._io.read_bytes(self.count * 16)

        if  ((self.type == 2) and (self.size > 0)) :
            pass
            self.responding_site_id = self._io.read_bytes(16)

        if  ((self.type == 2) and (self.size > 0)) :
            pass
            self.directoryserviceserverarray = self._io.read_bytes(self.size)



    def _fetch_instances(self):
        pass
        if self.type == 1:
            pass

        if self.type == 1:
            pass

        if self.type == 1:
            pass

        if  ((self.type == 1) and (self._io.size() - self._io.pos() > 0)) :
            pass

        if self.type == 2:
            pass

        if self.type == 2:
            pass

        if self.type == 2:
            pass

        if self.type == 2:
            pass

        if self.type == 2:
            pass

        if  ((self.type == 2) and (self.size > 0)) :
            pass

        if  ((self.type == 2) and (self.size > 0)) :
            pass



