"""The streams that are open, and the memory that belongs to each: bytes ahead of it, and a packet not yet complete."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

cdef enum:
    FIRST_CAPACITY = 64
    FIRST_PACKET = 4096  # bytes that a packet is given at first: it may never come to what its header says


# --- The table ---


cdef void start_table(FlowTable* table, uint64_t seed) noexcept nogil:
    cdef uint64_t word
    cdef size_t i
    memset(table, 0, sizeof(table[0]))
    table.seed = seed
    for i in range(<size_t>KEYS):  # SplitMix64 (Steele, Lea, Flood 2014)
        seed += <uint64_t>0x9E3779B97F4A7C15
        word = (seed ^ seed >> 30) * <uint64_t>0xBF58476D1CE4E5B9
        word = (word ^ word >> 27) * <uint64_t>0x94D049BB133111EB
        table.keys[i] = word ^ word >> 31
    table.unused = table.newest = table.oldest = NO_FLOW


cdef void free_table(FlowTable* table) noexcept nogil:
    while table.oldest != NO_FLOW:
        remove_flow(table, &table.flows[table.oldest])
    free(table.flows)
    free(table.slots)
    start_table(table, table.seed)


cdef Flow* find_flow(FlowTable* table, const Endpoints* endpoints) noexcept nogil:
    """The flow with these endpoints, or NULL."""
    cdef size_t mask = 2 * table.capacity - 1
    cdef uint32_t index
    cdef size_t slot
    cdef Flow* flow
    if table.newest == NO_FLOW:
        return NULL
    flow = &table.flows[table.newest]
    if same_endpoints(&flow.endpoints, endpoints):
        return flow
    slot = hash_of(table.keys, endpoints) & mask
    while True:
        index = table.slots[slot]
        if index == 0:
            return NULL
        flow = &table.flows[index - 1]
        if same_endpoints(&flow.endpoints, endpoints):
            return flow
        slot = (slot + 1) & mask


cdef void put_slot(FlowTable* table, uint32_t index) noexcept nogil:
    cdef size_t mask = 2 * table.capacity - 1
    cdef size_t slot = table.flows[index].hash & mask
    while table.slots[slot] != 0:
        slot = (slot + 1) & mask
    table.slots[slot] = index + 1


cdef uint64_t count_probes(const FlowTable* table) noexcept nogil:
    """The slots that are looked at to find each flow once."""
    cdef size_t mask = 2 * table.capacity - 1
    cdef uint64_t probes = 0
    cdef size_t slot
    for slot in range(2 * table.capacity):
        if table.slots[slot]:
            probes += 1 + ((slot - table.flows[table.slots[slot] - 1].hash) & mask)
    return probes


cdef bint grow_table(FlowTable* table) noexcept nogil:
    """Make space for twice as many; false if there is no memory."""
    cdef size_t capacity = max(2 * table.capacity, <size_t>FIRST_CAPACITY)
    cdef uint32_t* slots = <uint32_t*>calloc(2 * capacity, sizeof(uint32_t))
    cdef Flow* flows = <Flow*>realloc(table.flows, capacity * sizeof(Flow))
    cdef uint32_t i
    if flows != NULL:
        table.flows = flows
    if flows == NULL or slots == NULL:
        free(slots)
        return False
    free(table.slots)
    table.slots = slots
    i = <uint32_t>capacity
    while i > table.capacity:
        i -= 1
        table.flows[i].older = table.unused
        table.unused = i
    table.capacity = capacity
    i = table.oldest
    while i != NO_FLOW:
        put_slot(table, i)
        i = table.flows[i].newer
    return True


cdef Flow* add_flow(FlowTable* table, const Endpoints* endpoints) noexcept nogil:
    """A new flow, all zero but for its endpoints; NULL when there is no memory. Other flows may move."""
    cdef uint32_t index
    cdef Flow* flow
    if table.unused == NO_FLOW and not grow_table(table):
        return NULL
    index = table.unused
    flow = &table.flows[index]
    table.unused = flow.older
    memset(flow, 0, sizeof(flow[0]))
    flow.endpoints = endpoints[0]
    flow.hash = hash_of(table.keys, endpoints)
    put_slot(table, index)
    put_in_front(table, index)
    table.count += 1
    return flow


cdef void put_in_front(FlowTable* table, uint32_t index) noexcept nogil:
    cdef Flow* flow = &table.flows[index]
    flow.older = table.newest
    flow.newer = NO_FLOW
    if table.newest != NO_FLOW:
        table.flows[table.newest].newer = index
    else:
        table.oldest = index
    table.newest = index


cdef void take_out(FlowTable* table, const Flow* flow) noexcept nogil:
    if flow.newer != NO_FLOW:
        table.flows[flow.newer].older = flow.older
    else:
        table.newest = flow.older
    if flow.older != NO_FLOW:
        table.flows[flow.older].newer = flow.newer
    else:
        table.oldest = flow.newer


cdef void move_to_front(FlowTable* table, Flow* flow) noexcept nogil:
    """Make it the newest."""
    if flow.newer != NO_FLOW:
        take_out(table, flow)
        put_in_front(table, <uint32_t>(flow - table.flows))


cdef void clear_slot(FlowTable* table, const Flow* flow) noexcept nogil:
    """Free the flow's slot, and move up the later flows that are there since their own slots were taken."""
    cdef size_t mask = 2 * table.capacity - 1
    cdef uint32_t index = <uint32_t>(flow - table.flows)
    cdef size_t hole = flow.hash & mask
    cdef size_t slot, home
    while table.slots[hole] != index + 1:
        hole = (hole + 1) & mask
    slot = hole
    while True:
        slot = (slot + 1) & mask
        if table.slots[slot] == 0:
            break
        home = table.flows[table.slots[slot] - 1].hash & mask
        if ((slot - home) & mask) >= ((slot - hole) & mask):
            table.slots[hole] = table.slots[slot]
            hole = slot
    table.slots[hole] = 0


cdef void remove_flow(FlowTable* table, Flow* flow) noexcept nogil:
    """Forget it and free what belongs to it."""
    free_pieces(table, &flow.pieces)
    free_pieces(table, &flow.next_pieces)
    free(release_packet(table, flow))
    free(release_run(table, flow))
    if flow.head != NULL:
        table.memory -= sizeof(Head)
        free(flow.head)
    clear_slot(table, flow)
    take_out(table, flow)
    flow.older = table.unused
    table.unused = <uint32_t>(flow - table.flows)
    table.count -= 1


# --- Pieces: bytes captured before earlier bytes of their stream ---


cdef Piece* new_piece(
    FlowTable* table, Pieces* pieces, uint64_t position, const uint8_t* data, size_t size, const Origin* origin
) noexcept nogil:
    cdef Piece* piece = <Piece*>malloc(sizeof(Piece) + size)
    if piece == NULL:
        return NULL
    piece.position = position
    piece.size = size
    piece.origin = origin[0]
    memcpy(piece + 1, data, size)
    table.memory += sizeof(Piece) + size
    pieces.bytes += size
    pieces.count += 1
    return piece


cdef bint hold_piece(
    FlowTable* table, Pieces* pieces, uint64_t position, const uint8_t* data, size_t size, const Origin* origin,
    bint* differs, size_t* duplicate,
) noexcept nogil:
    """Keep the bytes that no piece has yet, and compare the others; false when there is no memory.

    ``differs`` is set when a byte is not what it was; ``duplicate`` grows by the bytes that were there.
    """
    cdef Piece** link = &pieces.first
    cdef Piece* piece
    cdef Piece* made
    cdef size_t part
    if pieces.first != NULL and pieces.last.position + pieces.last.size <= position:
        link = &pieces.last.next
    while size:
        piece = link[0]
        if piece != NULL and piece.position + piece.size <= position:
            link = &piece.next
            continue
        part = size
        if piece == NULL or position < piece.position:
            if piece != NULL and piece.position - position < part:
                part = <size_t>(piece.position - position)
            made = new_piece(table, pieces, position, data, part, origin)
            if made == NULL:
                return False
            made.next = piece
            link[0] = made
            link = &made.next
            if piece == NULL:
                pieces.last = made
        else:
            part = min(part, <size_t>(piece.position + piece.size - position))
            if memcmp(data, piece_data(piece) + (position - piece.position), part) != 0:
                differs[0] = True
            duplicate[0] += part
        position += part
        data += part
        size -= part
    return True


cdef Piece* take_piece(FlowTable* table, Pieces* pieces) noexcept nogil:
    """The first piece, which is the caller's to free."""
    cdef Piece* piece = pieces.first
    pieces.first = piece.next
    if piece.next == NULL:
        pieces.last = NULL
    pieces.bytes -= piece.size
    pieces.count -= 1
    table.memory -= sizeof(Piece) + piece.size
    return piece


cdef void free_pieces(FlowTable* table, Pieces* pieces) noexcept nogil:
    while pieces.first != NULL:
        free(take_piece(table, pieces))


# --- Bytes in which no packet begins ---


cdef bint open_run(FlowTable* table, Flow* flow) noexcept nogil:
    """Begin a run without bytes; false if there is no memory."""
    flow.run = <Run*>calloc(1, sizeof(Run))
    if flow.run == NULL:
        return False
    table.memory += sizeof(Run)
    return True


cdef Run* release_run(FlowTable* table, Flow* flow) noexcept nogil:
    """The run, which is the caller's to free; NULL if none is open."""
    cdef Run* run = flow.run
    if run != NULL:
        table.memory -= sizeof(Run)
        flow.run = NULL
    return run


# --- The packet that is not complete ---


cdef bint open_head(FlowTable* table, Flow* flow) noexcept nogil:
    """Make space for a BaseHeader; false if there is no memory."""
    if flow.head == NULL:
        flow.head = <Head*>malloc(sizeof(Head))
        if flow.head == NULL:
            return False
        table.memory += sizeof(Head)
    return True


cdef bint grow_packet(FlowTable* table, Flow* flow, size_t needed) noexcept nogil:
    """Make space for ``needed`` bytes of the packet, which is no more than ``total``; false when there is no memory."""
    cdef size_t capacity = flow.capacity
    cdef uint8_t* data
    if needed <= capacity:
        return True
    capacity = min(max(max(needed, 2 * capacity), <size_t>FIRST_PACKET), <size_t>flow.total)
    data = <uint8_t*>realloc(flow.data, capacity)
    if data == NULL:
        return False
    table.memory += capacity - flow.capacity
    flow.data = data
    flow.capacity = <uint32_t>capacity
    return True


cdef uint8_t* release_packet(FlowTable* table, Flow* flow) noexcept nogil:
    """The memory of the packet, which is the caller's to free; no packet is open any more."""
    cdef uint8_t* data = flow.data
    table.memory -= flow.capacity
    flow.data = NULL
    flow.filled = flow.total = flow.capacity = 0
    return data
