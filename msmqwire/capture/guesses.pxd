"""What is guessed of the streams where reading begins inside a file, and the frames that only the truth can tell of."""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from msmqwire.capture.flows cimport Endpoints
from msmqwire.capture.frames cimport Frame

cdef enum:
    NUMBERED = 40  # bits of a position in a stream; the number of the guess it rests on is above them, 0 for none
    MOST_GUESSES = (1 << 24) - 1
    MOST_HEADS = 32 << 20  # bytes of frames that are kept


cdef enum GuessKind:
    CONTINUES  # the stream was read up to this sequence number, between two packets
    BEGINS     # it did not begin with this sequence number, and no packet of it was open
    DIFFERS    # it did not begin with this sequence number


cdef struct Guess:
    Endpoints endpoints
    GuessKind kind
    uint32_t sequence


# A frame whose segment, or the beginning of it, belongs to a packet that was open; its bytes lie right behind.
cdef struct Head:
    Frame frame
    size_t passed  # bytes of its payload that do, 0 for all


cdef struct Guesses:
    bint active          # a stream that is not known may have been open
    bint keeping         # no stream may be forgotten, whatever is held
    bint wrong           # what was read cannot be joined with what was read in front of it
    size_t peak          # bytes of all streams that were held
    Guess* guesses
    size_t count
    size_t capacity
    uint8_t* heads
    size_t heads_size
    size_t heads_capacity


cdef uint64_t add_guess(
    Guesses* guesses, const Endpoints* endpoints, GuessKind kind, uint32_t sequence
) noexcept nogil
cdef void keep_head(Guesses* guesses, const Frame* frame, size_t passed) noexcept nogil
cdef size_t read_head(const uint8_t* data, Frame* frame, size_t* passed) noexcept nogil
cdef void free_guesses(Guesses* guesses) noexcept nogil
