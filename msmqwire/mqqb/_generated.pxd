"""Written by `make build` from framing.py, numbers.py, schema.py; do not edit."""

cdef enum:
    BASE_HEADER_SIZE = 0x10
    SESSION_HEADER_SIZE = 0x10
    VERSION_NUMBER = 0x10
    PACKET_SIGNATURE = 0x524f494c
    LARGEST_PACKET = 0x400000
    FLAG_INTERNAL = 0x8
    FLAG_SESSION = 0x10

cdef enum:
    FOR_EVER = 0xffffffff
    MOST_HOPS = 0x1d
    DESTINATION_CODES = 0xa9
    ADMIN_CODES = 0xed
    LARGEST_LABEL = 0xfa
    LARGEST_SENDER_CERT = 0xffff
    AU_OR_AS = 0xf10
    BODY_ENCRYPTED = 0x20
    ACKNOWLEDGMENTS = 0xf
    CLASS_BITS_UNUSED = 0x1e00
    SHA_1 = 0x8004
    FIRST_HASH_ALGORITHM = 0x8001
    HASH_ALGORITHMS = 0x280f
    RC2 = 0x6602
    RC4 = 0x6801
    FIRST_AES = 0x660e
    LAST_AES = 0x6610
    PRIVACY_LEVELS = 0x2b
    LARGEST_PRIVACY_LEVEL = 0x5
    PING_SIGNATURE = 0x5548
    RESIDENT_SYSTEM = 0x10
    LEAST_RECOVERABLE_ACK_TIMEOUT = 0x1f4
    LEAST_ACK_TIMEOUT = 0x4e20
    LARGEST_ACK_TIMEOUT = 0x1d4c0
    RESERVED_BASE = 0xfec0
    RESERVED_USER = 0xed000080
    RESERVED_TRANSACTION = 0xff000000
    RESERVED_SECURITY = 0xf000
    RESERVED_PROPERTIES = 0xf0
    RESERVED_DEBUG = 0xfffc
    RESERVED_INTERNAL = 0xffe0
    RESERVED_SYSTEM = 0xf800

# Fields as the specification names them; the field of a fault
cdef enum Field:
    BaseHeader
    VersionNumber
    BaseHeader_Flags
    Signature
    PacketSize
    UserHeader
    UserHeader_Flags
    DestinationQueue
    AdminQueue
    ResponseQueue
    ConnectorType
    TransactionHeader
    ConnectorQMGuid
    SecurityHeader
    SecurityHeader_SenderCertSize
    SecurityID
    EncryptionKey
    SecurityData_Signature
    SenderCert
    ProviderInfo
    MessagePropertiesHeader
    LabelLength
    Label
    ExtensionData
    MessageBody
    DebugHeader
    DebugHeader_Flags
    DebugHeader_QueueIdentifier
    SRMPEnvelopeHeader_DataLength
    CompoundMessageHeader
    CompoundMessageHeader_HttpBodySize
    CompoundMessageHeader_MessageBodySize
    CompoundMessageHeader_MessageBodyOffset
    SoapHeader
    SoapHeader_Header
    SoapBody
    SoapBody_Body
    Destination
    Destination_HeaderSize
    Destination_HeaderID
    Destination_FormatNameList
    Administration
    Administration_HeaderSize
    Administration_HeaderID
    Administration_FormatNameList
    Response
    Response_HeaderSize
    Response_HeaderID
    Response_FormatNameList
    MQFSignatureHeader
    MQFSignatureHeader_ID
    MQFSignatureHeader_Signature
    SessionHeader
    InternalHeader
    InternalHeader_Flags
    Ping
    Ping_Signature
    EstablishConnectionHeader
    ConnectionParametersHeader

# Bits of the column ``violations``
cdef enum Violation:
    TRAILING_BYTES = 1 << 0
    MISSING_PROPERTIES = 1 << 1
    DELIVERY_MODE = 1 << 2
    EXPRESS_TRANSACTION = 1 << 3
    HOP_COUNT = 1 << 4
    TRANSACTION_PRIORITY = 1 << 5
    TX_SEQUENCE_NUMBER = 1 << 6
    SECURITY_FLAGS = 1 << 7
    SENDER_ID = 1 << 8
    NO_SECURITY_DATA = 1 << 9
    LABEL_TERMINATOR = 1 << 10
    ALLOCATION_BODY_SIZE = 1 << 11
    PRIVACY_LEVEL = 1 << 12
    UNRESOLVED_QUEUE = 1 << 13
    RESERVED_FLAGS = 1 << 14
    SRMP_ENVELOPE_TERMINATOR = 1 << 15
    MISSING_DEBUG_HEADER = 1 << 16
    SOAP_TERMINATOR = 1 << 17
    SENT_OVER_HTTP = 1 << 18
    QUEUE_MANAGER_ADDRESS = 1 << 19
    ADMIN_QUEUE_FLAGS = 1 << 20
    MESSAGE_CLASS_VALUE = 1 << 21
    HASH_ALGORITHM = 1 << 22
    ENCRYPTION_ALGORITHM = 1 << 23
    WINDOW_SIZE = 1 << 24
    PREVIOUS_TX_SEQUENCE_NUMBER = 1 << 25
    CRYPTO_PROVIDER = 1 << 26
    PADDING = 1 << 27
    ACKNOWLEDGMENT = 1 << 28

# Faults of strict decoding
cdef enum:
    DISCARDABLE = TRAILING_BYTES | MISSING_PROPERTIES | DELIVERY_MODE | EXPRESS_TRANSACTION

# Bits of the presence of a row of messages
cdef enum Presence:
    HAS_DELIVERY_MODE = 1 << 1
    HAS_DESTINATION = 1 << 2
    HAS_ADMIN = 1 << 3
    HAS_RESPONSE = 1 << 4
    HAS_CONNECTOR_TYPE = 1 << 5
    HAS_TRANSACTION = 1 << 6
    HAS_CONNECTOR_QM = 1 << 7
    HAS_SECURITY = 1 << 8
    HAS_SENDER_ID_TYPE = 1 << 9
    HAS_SECURITY_ID = 1 << 10
    HAS_ENCRYPTION_KEY = 1 << 11
    HAS_SIGNATURE = 1 << 12
    HAS_SENDER_CERT = 1 << 13
    HAS_PROVIDER_INFO = 1 << 14
    HAS_PROPERTIES = 1 << 15
    HAS_MESSAGE_CLASS = 1 << 16
    HAS_DEBUG_QUEUE = 1 << 17
    HAS_SRMP_ENVELOPE = 1 << 18
    HAS_COMPOUND = 1 << 19
    HAS_SOAP = 1 << 20
    HAS_MULTI_QUEUE = 1 << 21
    HAS_SESSION = 1 << 22
    HAS_ACKNOWLEDGED = 1 << 23
    HAS_FINAL_ACK = 1 << 24
    HAS_NOTIFICATION = 1 << 25
    HAS_TRAILING = 1 << 26
    HAS_SENDER_SID = 1 << 27
    HAS_BODY_TYPE_NAME = 1 << 28
    HAS_EXTENSION_TEXT = 1 << 29
    HAS_BODY_TEXT = 1 << 30
    HAS_RESPONSE_CODE = 0x80000000

# Bits of the presence of a row of sessions
cdef enum SessionPresence:
    HAS_KIND = 1 << 1
    IS_PACKET = 1 << 2
    IS_PING = 1 << 3
    IS_ESTABLISH = 1 << 4
    IS_PARAMETERS = 1 << 5
    HAS_WINDOW = 1 << 6
    IS_SESSION_ACK = 1 << 7
    HAS_TRAILING_BYTES = 1 << 8

# Sections of a record: where fixed fields are loaded from
cdef enum:
    BASE = 0
    USER = 1
    CONNECTOR = 2
    TRANSACTION = 3
    CONNECTOR_QM = 4
    SECURITY = 5
    PROPERTIES = 6
    DEBUG_QUEUE = 7
    COMPOUND = 8
    SESSION = 9
    ACKNOWLEDGED = 10
    FINAL = 11
    INTERNAL = 1
    PINGED = 2
    ESTABLISH = 3
    PARAMETERS = 4
    WINDOW = 5
    SECTION_COUNT = 12

# Where fields begin in their headers
cdef enum:
    SIGNATURE_AT = 4
    PACKET_SIZE_AT = 8
    BASE_HEADER_FLAGS_AT = 2
    TIME_TO_REACH_QUEUE_AT = 12
    QUEUE_MANAGER_ADDRESS_AT = 16
    USER_HEADER_FLAGS_AT = 44
    TX_SEQUENCE_NUMBER_AT = 12
    PREVIOUS_TX_SEQUENCE_NUMBER_AT = 16
    SECURITY_HEADER_SECURITY_ID_SIZE_AT = 2
    SECURITY_HEADER_ENCRYPTION_KEY_SIZE_AT = 4
    SECURITY_HEADER_SIGNATURE_SIZE_AT = 6
    SECURITY_HEADER_SENDER_CERT_SIZE_AT = 8
    SECURITY_HEADER_PROVIDER_INFO_SIZE_AT = 12
    MESSAGE_CLASS_AT = 2
    BODY_TYPE_AT = 24
    MESSAGE_SIZE_AT = 32
    ALLOCATION_BODY_SIZE_AT = 36
    PRIVACY_LEVEL_AT = 40
    HASH_ALGORITHM_AT = 44
    ENCRYPTION_ALGORITHM_AT = 48
    EXTENSION_SIZE_AT = 52
    MESSAGE_BODY_SIZE_AT = 8
    MESSAGE_BODY_OFFSET_AT = 12
    SESSION_HEADER_WINDOW_SIZE_AT = 12
    ACKNOWLEDGED_TX_SEQUENCE_NUMBER_AT = 8
    ACKNOWLEDGED_PREVIOUS_TX_SEQUENCE_NUMBER_AT = 12
    INTERNAL_HEADER_FLAGS_AT = 2
    PING_SIGNATURE_AT = 2
    OPERATING_SYSTEM_AT = 36
    ESTABLISH_CONNECTION_RESERVED_AT = 38
    ACK_TIMEOUT_AT = 4
    CONNECTION_PARAMETERS_RESERVED_AT = 8
    WINDOW_SIZE_AT = 10

# Places in ``codes`` of a record
cdef enum:
    KIND
    DELIVERY
    SENDER
    NOTIFICATION
    REFUSED
    CODE_COUNT

# Places in ``queues`` of a record
cdef enum:
    DESTINATION_QUEUE
    ADMIN_QUEUE
    RESPONSE_QUEUE
    QUEUE_COUNT

# Places in ``parts`` of a record
cdef enum:
    SECURITY_ID
    ENCRYPTION_KEY
    SIGNATURE
    SENDER_CERT
    PROVIDER_INFO
    LABEL
    EXTENSION_DATA
    BODY
    SRMP_ENVELOPE
    HTTP_BODY
    COMPOUND_BODY
    SOAP_HEADER
    SOAP_BODY
    MULTI_QUEUE_SIGNATURE
    TRAILING
    PART_COUNT

# Places in ``numbers`` of a record
cdef enum:
    MESSAGE_CLASS
    NUMBER_COUNT

cdef enum MessageKind:
    USER_MESSAGE
    ORDER_ACK
    FINAL_ACK

cdef enum SessionKind:
    PING
    ESTABLISH_CONNECTION
    CONNECTION_PARAMETERS
    SESSION_ACK

cdef enum NotificationForm:
    PLAIN
    ENCRYPTED
