# This is a generated file! Please edit source .ksy file and use kaitai-struct-compiler to rebuild
# type: ignore  # written without types

import kaitaistruct
from kaitaistruct import KaitaiStruct, KaitaiStream, BytesIO


if getattr(kaitaistruct, 'API_VERSION', (0, 9)) < (0, 11):
    raise Exception("Incompatible Kaitai Struct Python API: 0.11 or later is required, but you have %s" % (kaitaistruct.__version__))

class MsmqNotification(KaitaiStruct):
    """A peer of the benchmarks, written the way one writes a .ksy: messages of a directory service, with the
    PROPIDs that its updates have.
    """
    def __init__(self, _io, _parent=None, _root=None):
        super(MsmqNotification, self).__init__(_io)
        self._parent = _parent
        self._root = _root or self
        self._read()

    def _read(self):
        self.version = self._io.read_u1()
        if not self.version == 1:
            raise kaitaistruct.ValidationNotEqualError(1, self.version, self._io, u"/seq/0")
        self.num_updates = self._io.read_u1()
        self.updates = []
        for i in range(self.num_updates):
            self.updates.append(MsmqNotification.NotificationUpdate(self._io, self, self._root))



    def _fetch_instances(self):
        pass
        for i in range(len(self.updates)):
            pass
            self.updates[i]._fetch_instances()


    class Blob(KaitaiStruct):
        def __init__(self, _io, _parent=None, _root=None):
            super(MsmqNotification.Blob, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self._read()

        def _read(self):
            self.len_value = self._io.read_u4le()
            self.value = self._io.read_bytes(self.len_value)


        def _fetch_instances(self):
            pass


    class Guid(KaitaiStruct):
        def __init__(self, _io, _parent=None, _root=None):
            super(MsmqNotification.Guid, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self._read()

        def _read(self):
            self.value = self._io.read_bytes(16)


        def _fetch_instances(self):
            pass


    class NotificationUpdate(KaitaiStruct):
        def __init__(self, _io, _parent=None, _root=None):
            super(MsmqNotification.NotificationUpdate, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self._read()

        def _read(self):
            self.command = self._io.read_u1()
            if not self.command <= 2:
                raise kaitaistruct.ValidationGreaterThanError(2, self.command, self._io, u"/types/notification_update/seq/0")
            self.use_guid = self._io.read_u1()
            if not self.use_guid <= 1:
                raise kaitaistruct.ValidationGreaterThanError(1, self.use_guid, self._io, u"/types/notification_update/seq/1")
            if self.use_guid == 0:
                pass
                self.path_name = (self._io.read_bytes_term_multi(b"\x00\x00", False, True, True)).decode(u"UTF-16LE")

            if self.use_guid == 1:
                pass
                self.guid_identifier = self._io.read_bytes(16)

            self.guid_master_id = self._io.read_bytes(16)
            self.reserved = self._io.read_bytes(24)
            self.num_properties = self._io.read_u1()
            self.property_ids = []
            for i in range(self.num_properties):
                self.property_ids.append(self._io.read_u4le())

            self.property_values = []
            for i in range(self.num_properties):
                _on = self.property_ids[i]
                if _on == 101:
                    pass
                    self.property_values.append(MsmqNotification.Guid(self._io, self, self._root))
                elif _on == 102:
                    pass
                    self.property_values.append(MsmqNotification.Guid(self._io, self, self._root))
                elif _on == 103:
                    pass
                    self.property_values.append(MsmqNotification.Text(self._io, self, self._root))
                elif _on == 104:
                    pass
                    self.property_values.append(self._io.read_u1())
                elif _on == 105:
                    pass
                    self.property_values.append(self._io.read_u4le())
                elif _on == 106:
                    pass
                    self.property_values.append(self._io.read_s2le())
                elif _on == 107:
                    pass
                    self.property_values.append(self._io.read_u4le())
                elif _on == 108:
                    pass
                    self.property_values.append(MsmqNotification.Text(self._io, self, self._root))
                elif _on == 109:
                    pass
                    self.property_values.append(self._io.read_s4le())
                elif _on == 110:
                    pass
                    self.property_values.append(self._io.read_s4le())
                elif _on == 1101:
                    pass
                    self.property_values.append(MsmqNotification.Blob(self._io, self, self._root))
                elif _on == 111:
                    pass
                    self.property_values.append(self._io.read_u1())
                elif _on == 112:
                    pass
                    self.property_values.append(self._io.read_u4le())
                elif _on == 113:
                    pass
                    self.property_values.append(self._io.read_u1())
                elif _on == 114:
                    pass
                    self.property_values.append(self._io.read_u1())
                elif _on == 115:
                    pass
                    self.property_values.append(MsmqNotification.Guid(self._io, self, self._root))
                elif _on == 1201:
                    pass
                    self.property_values.append(MsmqNotification.Blob(self._io, self, self._root))
                elif _on == 1403:
                    pass
                    self.property_values.append(self._io.read_u1())
                elif _on == 1404:
                    pass
                    self.property_values.append(self._io.read_u1())
                elif _on == 202:
                    pass
                    self.property_values.append(MsmqNotification.Guid(self._io, self, self._root))
                elif _on == 206:
                    pass
                    self.property_values.append(MsmqNotification.Blob(self._io, self, self._root))
                elif _on == 214:
                    pass
                    self.property_values.append(self._io.read_u4le())
                elif _on == 215:
                    pass
                    self.property_values.append(self._io.read_u4le())
                elif _on == 219:
                    pass
                    self.property_values.append(self._io.read_u1())



        def _fetch_instances(self):
            pass
            if self.use_guid == 0:
                pass

            if self.use_guid == 1:
                pass

            for i in range(len(self.property_ids)):
                pass

            for i in range(len(self.property_values)):
                pass
                _on = self.property_ids[i]
                if _on == 101:
                    pass
                    self.property_values[i]._fetch_instances()
                elif _on == 102:
                    pass
                    self.property_values[i]._fetch_instances()
                elif _on == 103:
                    pass
                    self.property_values[i]._fetch_instances()
                elif _on == 104:
                    pass
                elif _on == 105:
                    pass
                elif _on == 106:
                    pass
                elif _on == 107:
                    pass
                elif _on == 108:
                    pass
                    self.property_values[i]._fetch_instances()
                elif _on == 109:
                    pass
                elif _on == 110:
                    pass
                elif _on == 1101:
                    pass
                    self.property_values[i]._fetch_instances()
                elif _on == 111:
                    pass
                elif _on == 112:
                    pass
                elif _on == 113:
                    pass
                elif _on == 114:
                    pass
                elif _on == 115:
                    pass
                    self.property_values[i]._fetch_instances()
                elif _on == 1201:
                    pass
                    self.property_values[i]._fetch_instances()
                elif _on == 1403:
                    pass
                elif _on == 1404:
                    pass
                elif _on == 202:
                    pass
                    self.property_values[i]._fetch_instances()
                elif _on == 206:
                    pass
                    self.property_values[i]._fetch_instances()
                elif _on == 214:
                    pass
                elif _on == 215:
                    pass
                elif _on == 219:
                    pass



    class Text(KaitaiStruct):
        def __init__(self, _io, _parent=None, _root=None):
            super(MsmqNotification.Text, self).__init__(_io)
            self._parent = _parent
            self._root = _root
            self._read()

        def _read(self):
            self.value = (self._io.read_bytes_term_multi(b"\x00\x00", False, True, True)).decode(u"UTF-16LE")


        def _fetch_instances(self):
            pass



