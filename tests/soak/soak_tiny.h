/* soak_tiny.h - what soak_tiny.c and the ends of its connections, soak_tiny_end.c, have in common.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#ifndef CCI_SOAK_TINY_H
#define CCI_SOAK_TINY_H

#include <stdint.h>

#define NODES 3u
#define TALKS 4096u
#define OPS 65536u
#define OFFERED 1024u

typedef enum side_state { SIDE_NONE, SIDE_OPEN, SIDE_CLOSED } side_state_t;
typedef enum op_kind { OP_SEND, OP_WRITE, OP_READ } op_kind_t;

/* One side of a connection, as its program knows it. */
typedef struct side {
    uint32_t node, incarnation, talk, at; /* at: 0 the client's, 1 the server's */
    side_state_t state;
    void *connection;
    uint32_t sent, next; /* messages of its own; the next of the other side's that may come, RO */
    uint32_t open_ops;
    int has_ended, had_rnr;
} side_t;

/* A connection. */
typedef struct talk {
    side_t side[2];
    int attribute, is_connecting, was_refused;
    uint32_t first_op[2]; /* of its messages, by side: the chain goes on in op_t */
} talk_t;

typedef struct op {
    op_kind_t kind;
    uint32_t talk, at, number, length, offset; /* number: of the message */
    int is_silent, is_done, status, was_delivered, must_succeed;
} op_t;

typedef struct node node_t; /* a program with an endpoint, of one profile of the library */

/* One profile of the library. */
struct profile {
    const char *name;
    node_t *(*open)(uint32_t index, uint32_t incarnation);
    void (*work)(node_t *node);
    void (*connect)(node_t *node, uint32_t to, uint32_t talk);
    void (*send)(node_t *node, side_t *side, uint32_t length, int flags, int must_succeed);
    void (*move)(node_t *node, side_t *side, op_kind_t kind, int has_message, int is_fenced);
    void (*close_side)(node_t *node, side_t *side);
    void (*close)(node_t *node);
    long (*blocks_left)(void);
};

enum { SEND_SILENT = 1, SEND_FENCED = 2 };

extern uint64_t tiny_now_ns;
extern uint32_t tiny_mtu, tiny_talk_count, tiny_op_count;
extern int tiny_sealed; /* all packets are */
extern talk_t tiny_talks[TALKS];
extern op_t tiny_ops[OPS];
extern uint8_t tiny_offered[NODES][2][OFFERED]; /* the memory of each node, and what must be in it */
extern uint32_t tiny_writer[NODES];             /* 1 + the operation that moves to or from it; 0: none */
extern uint8_t tiny_handles[NODES][32];
extern int tiny_has_handle[NODES];
uint32_t tiny_below(uint32_t limit);
void tiny_fail(const char *what, uint32_t value) __attribute__((noreturn));
void tiny_send(uint32_t from, uint32_t to, const uint8_t *bytes, uint32_t length);
uint32_t tiny_receive(uint32_t at, uint32_t *from, uint8_t *bytes, uint32_t capacity);

#endif /* CCI_SOAK_TINY_H */
