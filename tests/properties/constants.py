"""The constants that [MS-MQCN] 2.2.2.1 lists, with the section of [MS-MQMQ] that each cites.

Two citations are wrong in the document: 2.3.1.22 of PROPID_Q_PATHNAME is PROPID_Q_PATHNAME_DNS, 2.3.2.31 of
PROPID_QM_SECURITY is PROPID_QM_SECURITY_INFORMATION. Their numbers are those of 2.3.1.3 and 2.3.2.36, as here.
"""

from __future__ import annotations

CONSTANTS = {
    "PROPID_Q_ADS_PATH": (126, "2.3.1.24"),
    "PROPID_Q_AUTHENTICATE": (111, "2.3.1.11"),
    "PROPID_Q_BASEPRIORITY": (106, "2.3.1.6"),
    "PROPID_Q_CREATE_TIME": (109, "2.3.1.9"),
    "PROPID_Q_INSTANCE": (101, "2.3.1.1"),
    "PROPID_Q_JOURNAL": (104, "2.3.1.4"),
    "PROPID_Q_JOURNAL_QUOTA": (107, "2.3.1.7"),
    "PROPID_Q_LABEL": (108, "2.3.1.8"),
    "PROPID_Q_MODIFY_TIME": (110, "2.3.1.10"),
    "PROPID_Q_MULTICAST_ADDRESS": (125, "2.3.1.23"),
    "PROPID_Q_PATHNAME": (103, "2.3.1.3"),
    "PROPID_Q_PRIV_LEVEL": (112, "2.3.1.12"),
    "PROPID_Q_SCOPE": (114, "2.3.1.14"),
    "PROPID_Q_QMID": (115, "2.3.1.15"),
    "PROPID_Q_QUOTA": (105, "2.3.1.5"),
    "PROPID_Q_SECURITY": (1101, "2.3.1.25"),
    "PROPID_Q_TRANSACTION": (113, "2.3.1.13"),
    "PROPID_Q_TYPE": (102, "2.3.1.2"),
    "PROPID_QM_CNS": (207, "2.3.2.6"),
    "PROPID_QM_FOREIGN": (219, "2.3.2.18"),
    "PROPID_QM_JOURNAL_QUOTA": (215, "2.3.2.14"),
    "PROPID_QM_SITE_ID": (201, "2.3.2.1"),
    "PROPID_QM_MACHINE_ID": (202, "2.3.2.2"),
    "PROPID_QM_ADDRESS": (206, "2.3.2.5"),
    "PROPID_QM_QUOTA": (214, "2.3.2.10"),
    "PROPID_QM_MACHINE_TYPE": (216, "2.3.2.15"),
    "PROPID_QM_MODIFY_TIME": (218, "2.3.2.17"),
    "PROPID_QM_OS": (220, "2.3.2.19"),
    "PROPID_QM_SECURITY": (1201, "2.3.2.36"),
    "PROPID_D_SCOPE": (1403, "2.3.13.3"),
    "PROPID_D_OBJTYPE": (1404, "2.3.13.4"),
}
