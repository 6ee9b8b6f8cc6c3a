/* Mutations that keep the structure of an input: records of captures, operations of streams, sizes of packets.
 *
 * Half of the mutations are libFuzzer's own. The others change one record inside its length, copy, remove or exchange
 * records, and write the lengths anew, so that the bytes after a change are still read. LAYOUT is one of the functions
 * below: where the record at the start of the data ends, 0 if none begins there. The front of an input is left alone.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

enum { MOST_RECORDS = 256, LONGEST = 4096 };

struct layout {
    size_t front;                                       /* bytes before the first record */
    size_t head;                                        /* bytes of a record before its content */
    size_t tail;                                        /* and after it */
    size_t (*length)(const uint8_t *record, size_t left);
    void (*set_length)(uint8_t *record, size_t length); /* NULL: a record does not say how long it is */
};

static uint32_t load(const uint8_t *data) {
    uint32_t value;
    memcpy(&value, data, 4);
    return value;
}

static void store(uint8_t *data, size_t value) {
    const uint32_t word = (uint32_t)value;
    memcpy(data, &word, 4);
}

static size_t pcap_length(const uint8_t *record, size_t left) {
    return left < 16 || load(record + 8) > left - 16 ? 0 : 16 + load(record + 8);
}

static void set_pcap_length(uint8_t *record, size_t length) {
    store(record + 8, length - 16);
    store(record + 12, length - 16);
}

static size_t block_length(const uint8_t *block, size_t left) {
    return left < 12 || load(block + 4) > left || load(block + 4) < 12 ? 0 : load(block + 4);
}

static void set_block_length(uint8_t *block, size_t length) {
    store(block + 4, length);
    store(block + length - 4, length);
    if (load(block) == 6 && length >= 32) {             /* the frame takes all of a packet block */
        store(block + 20, length - 32);
        store(block + 24, length - 32);
    }
}

static size_t operation_length(const uint8_t *operation, size_t left) {
    if (left < 4) {
        return 0;
    }
    return operation[0] & 32 ? 4 + (operation[3] < left - 4 ? operation[3] : left - 4) : 4;
}

static void set_operation_length(uint8_t *operation, size_t length) {
    if (operation[0] & 32) {
        operation[3] = (uint8_t)(length - 4 > 255 ? 255 : length - 4);
    }
}

static size_t packet_length(const uint8_t *packet, size_t left) {
    (void)packet;
    return left < 16 ? 0 : left;
}

static void set_packet_size(uint8_t *packet, size_t length) { /* [MS-MQMQ] 2.2.19.1 PacketSize */
    store(packet + 8, length);
}

static void set_array_size(uint8_t *reply, size_t length) {   /* [MS-MQSD] 2.2.3 DirectoryServiceServerSize */
    if (length >= 64) {
        const uint32_t networks = load(reply + 20);
        if (networks <= 32 && length >= 48 + 16 * networks) {
            store(reply + 28, length - 48 - 16 * networks);
        }
    }
}

static const struct layout pcap = {24, 16, 0, pcap_length, set_pcap_length};
static const struct layout pcapng = {28, 8, 4, block_length, set_block_length};
static const struct layout streams = {2, 4, 0, operation_length, set_operation_length};
static const struct layout message_packet = {0, 16, 0, packet_length, set_packet_size};
static const struct layout topology = {0, 48, 0, packet_length, set_array_size};

static uint32_t next(uint32_t *state) {                 /* xorshift, from the seed that libFuzzer gives */
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static size_t mutate(const struct layout *layout, uint8_t *data, size_t size, size_t most, uint32_t seed) {
    size_t starts[MOST_RECORDS + 1], count = 0, at = layout->front;
    uint8_t room[LONGEST];
    uint32_t state = seed | 1;
    while (count < MOST_RECORDS && at < size) {
        const size_t length = layout->length(data + at, size - at);
        if (length == 0) {
            break;
        }
        starts[count++] = at;
        at += length;
    }
    starts[count] = at;
    if (count == 0 || most > LONGEST || size > most || next(&state) % 2) {
        return LLVMFuzzerMutate(data, size, most);
    }
    const size_t one = next(&state) % count, other = next(&state) % count;
    const size_t begin = starts[one], length = starts[one + 1] - begin, target = starts[other];
    const size_t after = size - starts[one + 1];
    switch (next(&state) % 8) {
    case 0:                                             /* remove */
        if (count > 1) {
            memmove(data + begin, data + begin + length, after);
            return size - length;
        }
        break;
    case 1:                                             /* copy to another place */
    case 2:
        if (length <= most - size) {
            memcpy(room, data + begin, length);
            memmove(data + target + length, data + target, size - target);
            memcpy(data + target, room, length);
            return size + length;
        }
        break;
    case 3:                                             /* exchange with the next */
        if (one + 1 < count) {
            const size_t second = starts[one + 2] - starts[one + 1];
            memcpy(room, data + begin, length);
            memmove(data + begin, data + begin + length, second);
            memcpy(data + begin + second, room, length);
            return size;
        }
        break;
    default:
        break;
    }
    if (length < layout->head + layout->tail) {
        return LLVMFuzzerMutate(data, size, most);
    }
    if (next(&state) % 4 == 0) {                        /* the head: its length is written anew */
        LLVMFuzzerMutate(data + begin, layout->head, layout->head);
        layout->set_length(data + begin, length);
        return size;
    }
    const size_t content = length - layout->head - layout->tail;
    if (content + (most - size) == 0) {                 /* libFuzzer would write a byte nevertheless */
        return size;
    }
    memcpy(room, data + begin + layout->head, content);
    size_t changed = LLVMFuzzerMutate(room, content, content + (most - size));
    if (layout->tail) {                                 /* a block is a multiple of 4 bytes */
        changed &= ~(size_t)3;
    }
    memmove(data + begin + layout->head + changed + layout->tail, data + begin + length, after);
    memcpy(data + begin + layout->head, room, changed);
    layout->set_length(data + begin, layout->head + changed + layout->tail);
    return layout->head + changed + layout->tail + begin + after;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed) {
    return mutate(&LAYOUT, data, size, most, seed);
}
