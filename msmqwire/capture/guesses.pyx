"""What is guessed of the streams where reading begins inside a file: that a packet of each begins where one may.

Nothing of it is believed. What was read is used when the truth, once it is known, is what was guessed.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset


cdef uint64_t add_guess(
    Guesses* guesses, const Endpoints* endpoints, GuessKind kind, uint32_t sequence
) noexcept nogil:
    """One more; its number, as it stands in positions."""
    cdef size_t capacity = guesses.capacity
    cdef Guess* more
    if guesses.count == capacity:
        capacity = 2 * capacity + 64
        more = <Guess*>realloc(guesses.guesses, capacity * sizeof(Guess)) if capacity < MOST_GUESSES else NULL
        if more == NULL:
            guesses.wrong = True
            return 0
        guesses.guesses = more
        guesses.capacity = capacity
    more = &guesses.guesses[guesses.count]
    more.endpoints = endpoints[0]
    more.kind = kind
    more.sequence = sequence
    guesses.count += 1
    return <uint64_t>guesses.count << NUMBERED


cdef void keep_head(Guesses* guesses, const Frame* frame, size_t passed) noexcept nogil:
    """Keep a frame for when the truth is known."""
    cdef size_t needed = guesses.heads_size + sizeof(Head) + frame.size
    cdef size_t capacity = guesses.heads_capacity
    cdef uint8_t* more
    cdef Head head
    if needed > MOST_HEADS:
        guesses.wrong = True
        return
    if needed > capacity:
        capacity = 2 * needed
        more = <uint8_t*>realloc(guesses.heads, capacity)
        if more == NULL:
            guesses.wrong = True
            return
        guesses.heads = more
        guesses.heads_capacity = capacity
    memset(&head, 0, sizeof(head))
    head.frame = frame[0]
    head.frame.data = NULL
    head.passed = passed
    memcpy(guesses.heads + guesses.heads_size, &head, sizeof(head))
    memcpy(guesses.heads + guesses.heads_size + sizeof(head), frame.data, frame.size)
    guesses.heads_size = needed


cdef size_t read_head(const uint8_t* data, Frame* frame, size_t* passed) noexcept nogil:
    """The frame that was kept at ``data``, and how many bytes it takes there."""
    cdef Head head
    memcpy(&head, data, sizeof(head))
    frame[0] = head.frame
    frame.data = data + sizeof(head)
    passed[0] = head.passed
    return sizeof(head) + head.frame.size


cdef void free_guesses(Guesses* guesses) noexcept nogil:
    free(guesses.guesses)
    free(guesses.heads)
    memset(guesses, 0, sizeof(guesses[0]))
