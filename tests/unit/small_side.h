/* small_side.h - what small.c and the ends of its connections, small_side.c, have in common.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#include <stdint.h>

#ifndef MESSAGES
#define MESSAGES 60u /* in each direction */
#endif
#define KEPT_MESSAGES 12u /* to a server that keeps what it gets */
#define HANDLE_MESSAGE 0xffffu /* the number of the message with the handle of a server's memory */

typedef struct end end_t;

struct end_state {
    const char *failure; /* NULL, or the first thing that was wrong */
    uint32_t connected, refused, received, ended;
    int done;
};

/* One profile of the library. A server has no server to connect to: '\0'. */
struct side {
    end_t *(*open)(char number, char server, int attribute, int seed);
    void (*work)(end_t *end);
    /* 1, before it works: a server keeps what it gets, a client sends to it, and its time-outs are short. 2: no longer. */
    void (*keep)(end_t *end, int how);
    void (*close)(end_t *end);
    const struct end_state *(*state)(end_t *end);
    long (*blocks_left)(void);
    int seals; /* packets can be sealed */
};

/* The network, in virtual time. */
extern uint64_t small_now_ns;
extern uint32_t small_mtu;
extern int small_sealed; /* all packets are */
void small_send(uint8_t from, uint8_t to, const uint8_t *bytes, uint32_t length);
uint32_t small_receive(uint8_t at, uint8_t *from, uint8_t *bytes, uint32_t capacity);
