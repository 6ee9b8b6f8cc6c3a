/* What a program in C would write over libpcap: every frame of a file, those with a UDP datagram of a port counted. */
#include <pcap/pcap.h>
#include <stdint.h>
#include <stdio.h>

static uint32_t network_u16(const u_char *at) { return (uint32_t)at[0] << 8 | at[1]; }

/* The datagrams of `port` in the file and their bytes; -1 when it cannot be read. */
int udp_payloads(const char *path, uint32_t port, uint64_t *packets, uint64_t *bytes) {
    char error[PCAP_ERRBUF_SIZE];
    struct pcap_pkthdr *header;
    const u_char *frame;
    pcap_t *capture = pcap_open_offline(path, error);
    if (capture == NULL || pcap_datalink(capture) != DLT_EN10MB) return -1;
    *packets = *bytes = 0;
    while (pcap_next_ex(capture, &header, &frame) == 1) {
        const u_char *ip = frame + 14, *udp;
        uint32_t size, length;
        if (header->caplen < 42 || network_u16(frame + 12) != 0x0800 || ip[0] >> 4 != 4 || ip[9] != 17) continue;
        size = (uint32_t)(ip[0] & 15) * 4;
        if (size < 20 || header->caplen < 14 + size + 8 || network_u16(ip + 6) & 0x3fff) continue;
        udp = ip + size;
        length = network_u16(udp + 4);
        if (network_u16(udp) != port && network_u16(udp + 2) != port) continue;
        if (length < 8 || 14 + size + length > header->caplen) continue;
        *packets += 1;
        *bytes += length - 8;
    }
    pcap_close(capture);
    return 0;
}
