/* inet_pton and the address families, by the header of the system. */
#ifndef MSMQWIRE_INET_H
#define MSMQWIRE_INET_H

#if defined(_WIN32)
#include <winsock2.h>
#include <ws2tcpip.h>
#else
#include <arpa/inet.h>
#endif

#endif
