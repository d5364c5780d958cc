/* test_sisci_links.c - what the transport over SISCI keeps for its peers, and what becomes of it when they die, stop, lie or
 * are too many.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#define _GNU_SOURCE 1
#include <poll.h>
#include <stdint.h>
#include <time.h>

#include <sys/timerfd.h>

/* Each call that sets an alarm is counted. */
static unsigned int alarms_set;
static int last_alarm = -1;

static int counting_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old) {
    alarms_set++;
    last_alarm = fd;
    return timerfd_settime(fd, flags, value, old);
}

/* Is the last alarm that was set due by then, or has it rung, unheard? */
static int rings_within(uint32_t us) {
    struct itimerspec left;
    struct pollfd rung = {0, POLLIN, 0};
    rung.fd = last_alarm;
    if (timerfd_gettime(last_alarm, &left) != 0) return 0;
    if (left.it_value.tv_sec == 0 && left.it_value.tv_nsec == 0) return poll(&rung, 1, 0) == 1;
    return left.it_value.tv_sec == 0 && (uint32_t)left.it_value.tv_nsec / 1000 <= us;
}

/* A sanitizer keeps memory of its own beside each byte. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif

#define timerfd_settime counting_settime
#define CCI_IMPLEMENTATION
#include "tests/support/sisci.h"

#include "tests/support/harness.h"

#include <grp.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sched.h>
#include <sys/mount.h>

#define DOOR "77"
#define DOOR_URI "sisci://4:" DOOR

/* ---- looking inside ------------------------------------------------------------------------------------------------- */

static cci__sisci *inside(cci_endpoint_t *ep) {
    return (cci__sisci *)(void *)(uintptr_t)ep;
}

static unsigned int count_list(const cci_list_t *list) {
    const cci_list_t *at;
    unsigned int count = 0;
    for (at = list->next; at != list; at = at->next) {
        count++;
    }
    return count;
}

static unsigned int links_of(cci_endpoint_t *ep) {
    return count_list(&inside(ep)->links.hot) + count_list(&inside(ep)->links.cold);
}

static cci__sisci_link *link_of(cci_connection_t *connection) {
    return ((cci__sisci_conn *)(void *)(uintptr_t)connection)->link;
}

/* ---- before and after ------------------------------------------------------------------------------------------------- */

static int begin(void **state) {
    if (setup(state) != 0) {
        return -1;
    }
    alarm(240); /* each wait has an end of its own, however busy the machine is */
    on_sisci = 1;
    patience_s = 60;
    snprintf(config_text, sizeof config_text, "[shm]\ntransport = sisci\n");
    return begin_test(state);
}

/* Names of processes that were killed go when the next device is opened. */
static int finish(void **state) {
    int ended = end_test(state);
    close_device(open_device());
    return teardown(state) == 0 ? ended : -1;
}

/* Lets all sides work until another process says something, and returns that. */
static char hear_working(int fd) {
    patience_t patience = be_patient();
    struct pollfd item;
    char letter = 0;
    item.fd = fd;
    item.events = POLLIN;
    while (poll(&item, 1, 0) == 0) {
        poll_all();
        still_patient(&patience, "another process");
    }
    return read(fd, &letter, 1) == 1 ? letter : (char)0;
}

static void request(side_t *side, cci_conn_attribute_t attribute, uintptr_t context) {
    TRUE(cci_connect(side->ep, DOOR_URI, NULL, 0, attribute, as_context(context), 0, NULL) == CCI_SUCCESS);
}

/* Accepts whoever asks. */
static int accept_all(side_t *side, cci_event_t *event) {
    if (event->type != CCI_EVENT_CONNECT_REQUEST) {
        return 0;
    }
    TRUE(cci_accept(event, side->user) == CCI_SUCCESS);
    drop(event);
    return 1;
}

static side_t *open_door(void) {
    side_t *side = side_open_at(NULL, DOOR);
    side->handler = accept_all;
    return side;
}

static cci_connection_t *await_connection(side_t *side) {
    cci_event_t *event = await(side, CCI_EVENT_CONNECT);
    cci_connection_t *connection = event->connect.connection;
    TRUE(event->connect.status == CCI_SUCCESS && connection != NULL);
    drop(event);
    return connection;
}

static cci_connection_t *await_accepted(side_t *side) {
    cci_event_t *event = await(side, CCI_EVENT_ACCEPT);
    cci_connection_t *connection = event->accept.connection;
    TRUE(event->accept.status == CCI_SUCCESS && connection != NULL);
    drop(event);
    return connection;
}

/* A second process has no part in its parent's endpoints. */
static void begin_child(void) {
    uint32_t caps;
    side_count = 0;
    TRUE(cci_setup(&test_setup) == CCI_SUCCESS && cci_init(CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS); /* its own */
}

/* A connection that works. */
static void try_connection(cci_connection_t *from, side_t *to) {
    cci_event_t *event;
    send_patiently(from, "alive?", 6, 0, CCI_FLAG_SILENT);
    event = await(to, CCI_EVENT_RECV);
    TRUE(event->recv.len == 6 && memcmp(event->recv.ptr, "alive?", 6) == 0);
    drop(event);
}

/* ---- clients that die at the door ------------------------------------------------------------------------------------- */

enum { KNOCKERS = 8 };

/* Knocks with several endpoints, and gets a little further with each number it hears. */
static void knocks(int in, int out) {
    int i, rounds;
    begin_child();
    for (i = 0; i < KNOCKERS; i++) {
        request(side_open(), CCI_CONN_ATTR_RO, 0);
    }
    for (rounds = hear(in); rounds > 0; rounds--) {
        poll_all();
    }
    say(out, 'k');
    (void)hear(in);
}

static void clients_that_are_killed_while_they_knock_keep_nobody_out(void **state) {
    side_t *server = open_door();
    unsigned int descriptors = count_descriptors();
    patience_t patience;
    int i;
    (void)state;
    for (i = 1; i <= 24; i++) {
        child c = start(knocks);
        say(c.to, (char)(i * 4));
        TRUE(hear_working(c.from) == 'k');
        kill_child(&c);
    }
    patience = be_patient(); /* only now: on a busy machine the processes above take their time */
    while (links_of(server->ep) > 0) {
        cci_event_t *event = take(server, CCI_EVENT_ACCEPT); /* some got as far as that */
        if (event != NULL) {
            TRUE(event->accept.status != CCI_SUCCESS || cci_disconnect(event->accept.connection) == CCI_SUCCESS);
            drop(event);
        }
        poll_all();
        still_patient(&patience, "the end of all links");
    }
    AWAIT(count_descriptors() == descriptors);
    {
        side_t *client = side_open();
        request(client, CCI_CONN_ATTR_RO, 0);
        try_connection(await_connection(client), server);
    }
}

/* Is let in, and stays. */
static void stays(int in, int out) {
    begin_child();
    request(side_open(), CCI_CONN_ATTR_RO, 0);
    (void)await_connection(&sides[0]);
    say(out, 'c');
    (void)hear_working(in);
}

/* Makes an endpoint of its own, and works with it when it is told to. */
static void begins_anew(int in, int out) {
    int rounds;
    begin_child();
    (void)side_open();
    say(out, 'b');
    (void)hear(in);
    for (rounds = 0; rounds < 20; rounds++) {
        poll_all();
    }
    say(out, 'e');
}

static void the_death_of_a_peer_is_noticed_though_another_child_was_born_since(void **state) {
    side_t *server = open_door();
    cci_connection_t *connection;
    child peer, other;
    char letter;
    (void)state;
    peer = start(stays);
    TRUE(hear_working(peer.from) == 'c');
    connection = await_accepted(server);
    other = start(begins_anew); /* what it inherits is its parent's still */
    TRUE(hear(other.from) == 'b');
    TRUE(kill(peer.pid, SIGKILL) == 0 && waitpid(peer.pid, NULL, 0) == peer.pid);
    close(peer.to);
    close(peer.from);
    say(other.to, 'w');
    TRUE(read(other.from, &letter, 1) == 1 && letter == 'e'); /* until now nobody else has looked */
    TRUE(end(&other) == 0);
    AWAIT(link_of(connection)->state != CCI__SISCI_OPEN);
    TRUE(cci_disconnect(connection) == CCI_SUCCESS);
    AWAIT(links_of(server->ep) == 0);
}

/* ---- links without connections ------------------------------------------------------------------------------------------ */

static void a_link_without_connections_is_closed_and_made_anew(void **state) {
    side_t *server = open_door(), *client = side_open();
    unsigned int descriptors = count_descriptors();
    int i;
    (void)state;
    for (i = 0; i < 2; i++) {
        cci_connection_t *mine, *its;
        request(client, CCI_CONN_ATTR_RO, 0);
        mine = await_connection(client);
        its = await_accepted(server);
        try_connection(mine, server);
        TRUE(links_of(client->ep) == 1 && links_of(server->ep) == 1);
        TRUE(inside(client->ep)->links.handshakes == 0 && inside(server->ep)->links.handshakes == 0);
        TRUE(cci_disconnect(mine) == CCI_SUCCESS);
        AWAIT(links_of(client->ep) == 0); /* although the server has not closed its end */
        TRUE(cci_send(its, "x", 1, NULL, 0) == CCI_ERR_DISCONNECTED);
        AWAIT(count_descriptors() == descriptors);
        TRUE(cci_disconnect(its) == CCI_SUCCESS);
        AWAIT(links_of(server->ep) == 0);
    }
}

static void a_sleeping_client_closes_its_idle_link(void **state) {
    cci_os_handle_t fd;
    cci_endpoint_t *sleeper = NULL;
    side_t *client;
    cci_connection_t *mine;
    patience_t patience = be_patient();
    (void)state;
    (void)open_door();
    TRUE(cci_create_endpoint(NULL, 0, &sleeper, &fd) == CCI_SUCCESS);
    client = &sides[side_count];
    memset(client, 0, sizeof *client);
    client->ep = sleeper;
    side_count++;
    request(client, CCI_CONN_ATTR_RU, 0);
    mine = await_connection(client);
    TRUE(cci_disconnect(mine) == CCI_SUCCESS);
    client->deaf = 1; /* polled when its handle says so */
    while (links_of(client->ep) > 0) {
        struct pollfd item;
        item.fd = fd;
        item.events = POLLIN;
        poll_all();
        if (poll(&item, 1, 10) == 1) {
            client->deaf = 0;
            while (poll_side(client) > 0) {
            }
            client->deaf = 1;
        }
        still_patient(&patience, "the end of the link");
    }
}

static void links_that_nothing_happens_to_are_not_looked_at_but_not_forgotten(void **state) {
    enum { CLIENTS = 14 };
    side_t *server = open_door();
    cci_connection_t *its[CLIENTS], *mine[CLIENTS];
    uint32_t i;
    (void)state;
    for (i = 0; i < CLIENTS; i++) {
        side_t *client = side_open();
        request(client, i & 1 ? CCI_CONN_ATTR_RU : CCI_CONN_ATTR_RO, 0);
        mine[i] = await_connection(client);
        its[i] = await_accepted(server);
    }
    AWAIT(inside(server->ep)->links.hot_count <= CCI__SISCI_OF_MANY); /* the others are looked at in turn */
    AWAIT(cci__list_empty(&inside(server->ep)->links.steps));     /* and none of them with the device */
    TRUE(links_of(server->ep) == CLIENTS);
    for (i = 0; i < CLIENTS; i++) {
        try_connection(mine[i], server);
        try_connection(its[i], &sides[1 + i]);
    }
    AWAIT(cci__list_empty(&inside(server->ep)->links.steps));
    for (i = CLIENTS; i-- > 0;) {
        if (i & 1) { /* its end is heard of before the connection is closed, or after it */
            TRUE(cci_disconnect(its[i]) == CCI_SUCCESS);
        }
        side_close(&sides[--side_count]);
        if (!(i & 1)) {
            AWAIT(cci_send(its[i], "x", 1, NULL, CCI_FLAG_SILENT) == CCI_ERR_DISCONNECTED);
            AWAIT(cci__list_empty(&inside(server->ep)->links.steps));
            TRUE(link_of(its[i])->in.base == NULL && cci_disconnect(its[i]) == CCI_SUCCESS);
        }
        AWAIT(links_of(server->ep) == i);
    }
}

/* ---- a sleeping program that gives back --------------------------------------------------------------------------------- */

enum { DOOR_ROOM = 4 }; /* messages that the program may hold */

/* A server that sleeps, and is deaf until its handle wakes it. */
static side_t *open_sleeping_door(cci_os_handle_t *fd) {
    uint32_t room = DOOR_ROOM, mask = 1u << CCI_EVENT_DISCONNECT;
    side_t *side = &sides[side_count];
    memset(side, 0, sizeof *side);
    TRUE(cci_create_endpoint_at(NULL, DOOR, 0, &side->ep, fd) == CCI_SUCCESS);
    side->handler = accept_all;
    side_count++;
    TRUE(cci_set_opt(side->ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &room) == CCI_SUCCESS);
    TRUE(cci_set_opt(side->ep, CCI_OPT_ENDPT_EVENT_MASK, &mask) == CCI_SUCCESS);
    return side;
}

/* Takes all events until the handle says that there is nothing to do. */
static void fall_asleep(side_t *side, cci_os_handle_t fd) {
    patience_t patience = be_patient();
    side->deaf = 0;
    do {
        poll_all();
        still_patient(&patience, "an endpoint that has nothing to do");
    } while (is_readable(fd));
    side->deaf = 1;
}

/* The next event, which the program asks for when its handle has woken it. */
static cci_event_t *be_woken(side_t *side, cci_os_handle_t fd) {
    patience_t patience = be_patient();
    cci_event_t *event = NULL;
    do {
        while (!is_readable(fd)) {
            still_patient(&patience, "a handle that is readable");
        }
    } while (cci_get_event(side->ep, &event) != CCI_SUCCESS);
    return event;
}

/* Returns an event that the program holds: that wakes it for the event that waited for this. */
static void return_and_be_woken(side_t *side, cci_os_handle_t fd, cci_event_type_t held, cci_event_type_t waits) {
    cci_event_t *event = take(side, held);
    TRUE(event != NULL);
    drop(event);
    event = be_woken(side, fd);
    TRUE(event->type == waits);
    drop(event);
}

static void send_many(cci_connection_t *connection, int count) {
    for (; count > 0; count--) {
        TRUE(cci_send(connection, "here", 4, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
    }
}

static void a_program_is_woken_when_it_returns_what_a_message_waits_for(void **state) {
    cci_os_handle_t fd;
    side_t *server = open_sleeping_door(&fd), *client = side_open();
    uint32_t room = DOOR_ROOM + 1;
    cci_connection_t *mine;
    cci_event_t *event;
    (void)state;
    request(client, CCI_CONN_ATTR_RO, 0);
    mine = await_connection(client);
    drop(await(server, CCI_EVENT_ACCEPT));
    send_many(mine, DOOR_ROOM + 2);
    fall_asleep(server, fd);
    TRUE(count_of(server, CCI_EVENT_RECV) == DOOR_ROOM);
    return_and_be_woken(server, fd, CCI_EVENT_RECV, CCI_EVENT_RECV);
    fall_asleep(server, fd); /* with all that it may hold again */
    TRUE(count_of(server, CCI_EVENT_RECV) == DOOR_ROOM);
    send_many(mine, 1);
    fall_asleep(server, fd);
    TRUE(cci_set_opt(server->ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &room) == CCI_SUCCESS); /* there is room for one more */
    event = be_woken(server, fd);
    TRUE(event->type == CCI_EVENT_RECV);
    drop(event);
}

static void a_program_is_woken_when_it_returns_the_request_whose_buffer_a_message_waits_for(void **state) {
    cci_os_handle_t fd;
    side_t *server = open_sleeping_door(&fd), *client = side_open();
    cci_connection_t *mine;
    (void)state;
    request(client, CCI_CONN_ATTR_RO, 0);
    mine = await_connection(client);
    drop(await(server, CCI_EVENT_ACCEPT));
    server->handler = NULL;
    request(client, CCI_CONN_ATTR_RO, 0);
    AWAIT(count_of(server, CCI_EVENT_CONNECT_REQUEST) == 1);
    send_many(mine, DOOR_ROOM);
    fall_asleep(server, fd);
    TRUE(count_of(server, CCI_EVENT_RECV) == DOOR_ROOM - 1);
    TRUE(cci_reject(server->queue[0]) == CCI_SUCCESS);
    return_and_be_woken(server, fd, CCI_EVENT_CONNECT_REQUEST, CCI_EVENT_RECV);
}

/* All events about connections are held, the last of them as a request. */
static void a_program_is_woken_when_it_returns_the_event_that_the_end_of_a_connection_waits_for(void **state) {
    cci_os_handle_t fd;
    side_t *server = open_sleeping_door(&fd), *client = side_open();
    cci_connection_t *mine = NULL;
    uint32_t i;
    (void)state;
    for (i = 1; i < CCI__SISCI_CONTROL; i++) {
        request(client, CCI_CONN_ATTR_RO, 0);
        mine = await_connection(client);
        AWAIT(count_of(server, CCI_EVENT_ACCEPT) == i);
    }
    server->handler = NULL;
    request(client, CCI_CONN_ATTR_RO, 0);
    AWAIT(count_of(server, CCI_EVENT_CONNECT_REQUEST) == 1);
    TRUE(inside(server->ep)->base.evq.free_events[CCI_EVQ_CONTROL] == NULL);
    TRUE(cci_disconnect(mine) == CCI_SUCCESS);
    AWAIT(!cci__list_empty(&inside(server->ep)->ending));
    fall_asleep(server, fd);
    return_and_be_woken(server, fd, CCI_EVENT_ACCEPT, CCI_EVENT_DISCONNECT);
}

/* ---- records that wait for space for an answer ------------------------------------------------------------------------------ */

/* Takes what there is for one side alone. */
static void poll_alone(side_t *side) {
    int i;
    for (i = 0; i < 100; i++) {
        (void)poll_side(side);
    }
}

/* The server's end of the link, whose ring to the client is filled by silent messages: nothing waits to be sent. */
static cci__sisci_link *fill_ring(cci_connection_t *its) {
    cci__sisci_link *link = link_of(its);
    while (cci__sisci_has_room(link, 1)) {
        TRUE(cci_send(its, "filler", 6, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
    }
    TRUE(link->items == NULL && cci__list_empty(&link->ops));
    return link;
}

/* A sleeping server and a client that does not look: their rings are as short as they can be. */
static side_t *open_sleeper_with_short_rings(cci_os_handle_t *fd, side_t **client, cci_connection_t **mine,
                                             cci_connection_t **its) {
    side_t *server;
    end_test(NULL);
    snprintf(config_text, sizeof config_text, "[shm]\ntransport = sisci\nring = 4096\n");
    TRUE(begin_test(NULL) == 0);
    server = open_sleeping_door(fd);
    *client = side_open();
    request(*client, CCI_CONN_ATTR_RO, 0);
    *mine = await_connection(*client);
    *its = await_accepted(server);
    return server;
}

static void a_request_that_waits_for_space_for_its_refusal_keeps_a_server_awake_when_there_is_some(void **state) {
    cci_os_handle_t fd;
    cci_connection_t *mine, *its;
    side_t *client, *server = open_sleeper_with_short_rings(&fd, &client, &mine, &its);
    cci__sisci_link *link;
    (void)state;
    client->deaf = 1;
    link = fill_ring(its);
    inside(server->ep)->requests = CCI__SISCI_REQUESTS; /* the program has not returned so many */
    request(client, CCI_CONN_ATTR_RO, 1);
    fall_asleep(server, fd);
    TRUE(link->stall.is_answering && !cci__sisci_has_work(link)); /* it sleeps until the client takes something */
    client->deaf = 0;
    poll_alone(client);
    TRUE(cci__sisci_has_work(link)); /* also when the client did so while the server was falling asleep */
    inside(server->ep)->requests = 0;
    server->deaf = 0;
    (void)await_connection(client); /* which asks again */
}

/* A client that is not idle says how far it has got with its next record, and that lies behind the request. */
static void an_acknowledgement_behind_a_request_that_waits_for_space_is_heard(void **state) {
    cci_os_handle_t fd;
    cci_connection_t *mine, *its;
    side_t *client, *server = open_sleeper_with_short_rings(&fd, &client, &mine, &its);
    cci__sisci_link *link;
    cci_event_t *event;
    uint32_t before;
    (void)state;
    client->deaf = 1;
    link = fill_ring(its);
    inside(server->ep)->requests = CCI__SISCI_REQUESTS;
    request(client, CCI_CONN_ATTR_RO, 1);
    fall_asleep(server, fd);
    TRUE(link->stall.is_answering && !cci__sisci_has_work(link));
    before = cci__sisci_load(link->in.base + CCI__SISCI_AT_ACK);
    client->deaf = 0;
    poll_alone(client);
    TRUE(cci_send(mine, "behind", 6, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
    cci__sisci_store(link->in.base + CCI__SISCI_AT_ACK, before); /* as if it had not been idle meanwhile */
    TRUE(cci__sisci_has_work(link));
    server->deaf = 0;
    event = await(server, CCI_EVENT_RECV); /* the request before it was refused */
    TRUE(event->recv.len == 6 && memcmp(event->recv.ptr, "behind", 6) == 0);
    drop(event);
    inside(server->ep)->requests = 0;
    (void)await_connection(client);
}

static void an_answer_that_waits_for_space_keeps_a_server_awake_when_there_is_some(void **state) {
    cci_os_handle_t fd;
    cci_connection_t *mine, *its;
    side_t *client, *server = open_sleeper_with_short_rings(&fd, &client, &mine, &its);
    cci__sisci_link *link;
    (void)state;
    client->deaf = 1;
    request(client, CCI_CONN_ATTR_RO, 1);
    server->handler = NULL;
    AWAIT(count_of(server, CCI_EVENT_CONNECT_REQUEST) == 1);
    link = fill_ring(its);
    TRUE(cci_accept(server->queue[0], NULL) == CCI_SUCCESS);
    drop(take(server, CCI_EVENT_CONNECT_REQUEST));
    fall_asleep(server, fd);
    TRUE(!cci__list_empty(&link->conns.control) && !cci__sisci_has_work(link));
    client->deaf = 0;
    poll_alone(client);
    TRUE(cci__sisci_has_work(link));
    server->deaf = 0;
    (void)await_connection(client);
}

/* A look at the clock reads how far the peer has got. What that lets go on, or completes, must not wait for the next word. */
static void what_is_acknowledged_while_a_server_looks_at_the_clock_keeps_it_awake(void **state) {
    cci_os_handle_t fd;
    cci_connection_t *mine, *its;
    side_t *client, *server = open_sleeper_with_short_rings(&fd, &client, &mine, &its);
    cci__sisci_link *link;
    int round;
    (void)state;
    for (round = 0; round < 2; round++) {
        cci_event_t *event = NULL;
        client->deaf = 1;
        if (round == 0) { /* a message that waits for space, or a completion */
            link = fill_ring(its);
            TRUE(cci_send(its, "last", 4, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS && link->items != NULL);
        } else {
            link = link_of(its);
            TRUE(cci_send(its, "last", 4, NULL, 0) == CCI_SUCCESS && !cci__list_empty(&link->ops));
        }
        fall_asleep(server, fd);
        TRUE(!cci__sisci_has_work(link));
        client->deaf = 0;
        poll_alone(client);
        cci__sisci_read_ack(link);
        TRUE(cci__sisci_has_work(link));
        server->deaf = 0;
        while (event == NULL || event->recv.len != 4) {
            if (event != NULL) drop(event);
            event = await(client, CCI_EVENT_RECV);
        }
        drop(event);
        if (round == 1) drop(await(server, CCI_EVENT_SEND));
    }
}

static void a_withdrawn_message_that_waits_for_space_lets_its_receiver_sleep(void **state) {
    cci_os_handle_t fd;
    cci_connection_t *mine, *its;
    side_t *client, *server = open_sleeper_with_short_rings(&fd, &client, &mine, &its);
    cci__sisci_link *link = link_of(its);
    cci__sisci_op *late;
    (void)state;
    send_many(mine, DOOR_ROOM);
    TRUE(cci_send(mine, "late", 4, NULL, 0) == CCI_SUCCESS);
    fall_asleep(server, fd); /* with all that it may hold */
    late = CCI__CONTAINER(link_of(mine)->ops.next, cci__sisci_op, node);
    client->deaf = 1;
    (void)fill_ring(its);
    inside(client->ep)->base.now_ns = cci__sci_now();
    cci__sisci_cancel_behind(inside(client->ep), link_of(mine), late);
    cci__sisci_flush(inside(client->ep));
    fall_asleep(server, fd);
    TRUE(link->stall.is_answering && !cci__sisci_has_work(link));
    client->deaf = 0;
    poll_alone(client);
    TRUE(cci__sisci_has_work(link));
    server->deaf = 0;
    {
        cci_event_t *event = await(client, CCI_EVENT_SEND);
        TRUE(event->send.status == CCI_ERR_RNR);
        drop(event);
    }
}

/* The peer has consumed it, which the sender has not noticed: its lines have other records by now. */
static void a_message_whose_record_was_consumed_is_not_cancelled_when_its_time_is_over(void **state) {
    cci_os_handle_t fd;
    cci_connection_t *mine, *its;
    side_t *client, *server = open_sleeper_with_short_rings(&fd, &client, &mine, &its);
    cci__sisci_link *link = link_of(mine);
    cci__sisci_op *late;
    cci_event_t *event;
    char body[150];
    int i, count = 0;
    (void)state;
    memset(body, 'x', sizeof body);
    client->deaf = 1;
    TRUE(cci_send(mine, "late", 4, NULL, 0) == CCI_SUCCESS);
    late = CCI__CONTAINER(link->ops.next, cci__sisci_op, node);
    for (i = 0; i < 12; i++) {
        AWAIT(count_of(server, CCI_EVENT_RECV) == 1);
        drop(take(server, CCI_EVENT_RECV));
        TRUE(cci_send(mine, body, sizeof body, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
    }
    for (; cci__sisci_has_room(link, 4); count++) {
        TRUE(cci_send(mine, body, sizeof body, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
    }
    TRUE(link->ops.next == &late->node && link->out.head - late->start > link->out.lines);
    cci__sisci_read_ack(link);
    inside(client->ep)->base.now_ns = cci__sci_now();
    cci__sisci_cancel_behind(inside(client->ep), link, late);
    cci__sisci_flush(inside(client->ep));
    for (; count >= 0; count--) { /* and the last of the twelve */
        AWAIT(count_of(server, CCI_EVENT_RECV) > 0);
        event = take(server, CCI_EVENT_RECV);
        TRUE(event->recv.len == sizeof body && memcmp(event->recv.ptr, body, sizeof body) == 0);
        drop(event);
    }
    client->deaf = 0;
    event = await(client, CCI_EVENT_SEND);
    TRUE(event->send.status == CCI_SUCCESS);
    drop(event);
}

/* ---- many links, of which each is found at once ------------------------------------------------------------------------------- */

static void set_descriptor_limit(rlim_t limit) {
    struct rlimit r;
    TRUE(getrlimit(RLIMIT_NOFILE, &r) == 0);
    r.rlim_cur = limit;
    TRUE(setrlimit(RLIMIT_NOFILE, &r) == 0);
}

enum { SPOKES = 100, LOOKS = 3 }; /* calls in which what has come must be found */

typedef struct wheel {
    cci_endpoint_t *hub, *spoke[SPOKES];
    cci_connection_t *its[SPOKES], *mine[SPOKES]; /* of the hub, and of the spoke */
    cci_os_handle_t fd;
    unsigned int completed;
    uint32_t random;
} wheel;

static uint32_t any_spoke(wheel *w) {
    w->random = w->random * 1664525u + 1013904223u;
    return (w->random >> 8) % SPOKES;
}

/* The next event of an endpoint that has come within some calls; completions are counted and returned. */
static cci_event_t *look_for(wheel *w, cci_endpoint_t *ep, unsigned int looks) {
    cci_event_t *event;
    while (looks > 0) {
        if (cci_get_event(ep, &event) != CCI_SUCCESS) {
            looks--;
        } else if (event->type != CCI_EVENT_SEND) {
            return event;
        } else {
            TRUE(event->send.status == CCI_SUCCESS);
            w->completed++;
            drop(event);
        }
    }
    return NULL;
}

static void connect_spoke(wheel *w, uint32_t i) {
    patience_t patience = be_patient();
    cci_event_t *event;
    char *uri;
    TRUE(cci_create_endpoint(NULL, 0, &w->spoke[i], NULL) == CCI_SUCCESS);
    TRUE(cci_get_opt(w->hub, CCI_OPT_ENDPT_URI, &uri) == CCI_SUCCESS);
    TRUE(cci_connect(w->spoke[i], uri, NULL, 0, i & 1 ? CCI_CONN_ATTR_RO : CCI_CONN_ATTR_RU, NULL, 0, NULL) == CCI_SUCCESS);
    free(uri);
    while (!w->its[i] || !w->mine[i]) {
        event = look_for(w, w->hub, 1);
        if (event && event->type == CCI_EVENT_CONNECT_REQUEST) {
            TRUE(cci_accept(event, NULL) == CCI_SUCCESS);
        } else if (event) {
            TRUE(event->type == CCI_EVENT_ACCEPT && event->accept.status == CCI_SUCCESS);
            w->its[i] = event->accept.connection;
        }
        if (event) {
            drop(event);
        }
        event = look_for(w, w->spoke[i], 1);
        if (event) {
            TRUE(event->type == CCI_EVENT_CONNECT && event->connect.status == CCI_SUCCESS);
            w->mine[i] = event->connect.connection;
            drop(event);
        }
        still_patient(&patience, "a connection");
    }
}

static wheel *open_wheel(int sleeps) {
    static wheel w;
    struct rlimit r;
    uint32_t i;
    end_test(NULL);
    snprintf(config_text, sizeof config_text, "[shm]\ntransport = sisci\nring = 4096\nblocks = 2\nmax_send_size = 64\n"
                                              "send_buf_count = 16\nrecv_buf_count = 64\n");
    TRUE(getrlimit(RLIMIT_NOFILE, &r) == 0);
    r.rlim_cur = r.rlim_max < 4096 ? r.rlim_max : 4096;
    TRUE(setrlimit(RLIMIT_NOFILE, &r) == 0 && begin_test(NULL) == 0);
    memset(&w, 0, sizeof w);
    TRUE(cci_create_endpoint(NULL, 0, &w.hub, sleeps ? &w.fd : NULL) == CCI_SUCCESS);
    for (i = 0; i < SPOKES; i++) {
        connect_spoke(&w, i);
    }
    while (inside(w.hub)->links.hot_count > CCI__SISCI_OF_MANY) { /* nothing happens */
        TRUE(look_for(&w, w.hub, 1) == NULL);
    }
    return &w;
}

static void close_wheel(wheel *w) {
    uint32_t i;
    for (i = 0; i < SPOKES; i++) {
        TRUE(cci_destroy_endpoint(w->spoke[i]) == CCI_SUCCESS);
    }
    TRUE(cci_destroy_endpoint(w->hub) == CCI_SUCCESS);
    set_descriptor_limit(1024);
}

static void expect_from(wheel *w, cci_endpoint_t *at, cci_connection_t *connection, uint32_t number) {
    cci_event_t *event = look_for(w, at, LOOKS);
    TRUE(event != NULL && event->type == CCI_EVENT_RECV && event->recv.connection == connection);
    TRUE(event->recv.len == 4 && memcmp(event->recv.ptr, &number, 4) == 0);
    drop(event);
}

/* A question of any of them and its answer, with or without completions. */
static void turn(wheel *w, uint32_t number, int flags) {
    uint32_t i = any_spoke(w);
    TRUE(cci_send(w->mine[i], &number, 4, NULL, flags) == CCI_SUCCESS);
    expect_from(w, w->hub, w->its[i], number);
    TRUE(cci_send(w->its[i], &number, 4, NULL, flags) == CCI_SUCCESS);
    expect_from(w, w->spoke[i], w->mine[i], number);
    TRUE(look_for(w, w->spoke[i], LOOKS) == NULL && look_for(w, w->hub, LOOKS) == NULL);
}

static void a_message_of_any_of_many_links_is_found_in_the_next_calls(void **state) {
    wheel *w = open_wheel(0);
    uint32_t number;
    (void)state;
    for (number = 0; number < 2000; number++) {
        turn(w, number, number < 1000 ? CCI_FLAG_SILENT : 0);
        TRUE(inside(w->hub)->links.hot_count <= CCI__SISCI_OF_MANY + 2); /* so many are looked at in each call */
    }
    TRUE(w->completed == 2 * 1000);
    close_wheel(w);
}

/* A cold link of an endpoint that polls many stays cold, and its peer is asked for marks once: what is stored for a
 * message is its record and the mark. */
static void a_message_of_a_link_of_many_costs_no_word_besides_its_record_and_mark(void **state) {
    wheel *w = open_wheel(0);
    uint32_t number, i, watch[SPOKES], cold = 0;
    (void)state;
    for (i = 0; i < SPOKES; i++) {
        watch[i] = link_of(w->its[i])->is_hot ? 0 : link_of(w->its[i])->watch;
        cold += watch[i] != 0;
        TRUE(watch[i] == 0 || (watch[i] & CCI__SISCI_EACH));
    }
    TRUE(cold >= SPOKES - CCI__SISCI_OF_MANY);
    for (number = 0; number < 1000; number++) {
        turn(w, number, CCI_FLAG_SILENT);
    }
    for (i = 0; i < SPOKES; i++) {
        TRUE(watch[i] == 0 || (link_of(w->its[i])->watch == watch[i] && !link_of(w->its[i])->is_hot));
    }
    close_wheel(w);
}

/* Several of each, before any is taken: in the order of each link, and none is left behind without an acknowledgement. */
static void all_that_waits_on_many_links_comes_in_order_and_is_acknowledged(void **state) {
    enum { EACH = 5 };
    wheel *w = open_wheel(0);
    uint32_t number, i, got[SPOKES] = {0}, total = 0;
    cci_event_t *event;
    (void)state;
    for (number = 0; number < EACH; number++) {
        for (i = 0; i < SPOKES; i++) {
            TRUE(cci_send(w->mine[i], &number, 4, NULL, i % 3 ? CCI_FLAG_SILENT : 0) == CCI_SUCCESS);
        }
    }
    while ((event = look_for(w, w->hub, 2)) != NULL) {
        for (i = 0; w->its[i] != event->recv.connection; i++) {
        }
        TRUE(event->type == CCI_EVENT_RECV && memcmp(event->recv.ptr, &got[i], 4) == 0);
        got[i]++;
        total++;
        drop(event);
    }
    TRUE(total == EACH * SPOKES);
    for (i = 0; i < 64; i++) { /* a call in which nothing comes acknowledges; a few look at the links in turn first */
        TRUE(look_for(w, w->hub, 1) == NULL);
    }
    for (i = 0; i < SPOKES; i++) {
        TRUE(got[i] == EACH && link_of(w->its[i])->acknowledged == link_of(w->its[i])->in.tail);
        TRUE(look_for(w, w->spoke[i], LOOKS) == NULL);
    }
    TRUE(w->completed == EACH * ((SPOKES + 2) / 3));
    close_wheel(w);
}

/* A peer that is killed behind its record sets no mark, and a malicious one clears those of others. */
static void a_message_whose_mark_is_lost_is_found_in_turn(void **state) {
    wheel *w = open_wheel(0);
    cci__sisci_listener *listener = inside(w->hub)->entrance.listener;
    uint32_t number, i;
    (void)state;
    for (number = 0; number < SPOKES; number++) {
        cci_event_t *event;
        TRUE(cci_send(w->mine[number], &number, 4, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
        for (i = 0; i < CCI__SISCI_MARKS / 64; i++) {
            __atomic_store_n(&listener->marks[i], 0, __ATOMIC_RELAXED);
        }
        event = look_for(w, w->hub, 8 * (SPOKES + 1));
        TRUE(event != NULL && event->type == CCI_EVENT_RECV && event->recv.connection == w->its[number]);
        drop(event);
    }
    close_wheel(w);
}

/* The longest list that a message of a channel is looked up in: what a process has of another. */
static unsigned int longest_walk(const cci__sci_desc_t sd) {
    const cci__sci_client *client;
    const cci__sci_peer *peer;
    unsigned int most = 0;
    for (client = sd->clients; client; client = client->next) {
        most = client->count > most ? client->count : most;
    }
    for (peer = sd->peers; peer; peer = peer->next) {
        const cci__sci_remote *r;
        unsigned int count = 0;
        for (r = peer->remotes; r; r = r->next) {
            count++;
        }
        most = count > most ? count : most;
    }
    return most;
}

/* An endpoint has a channel for each other, and in that the inbox, the door and the interrupt of one link. */
static void what_is_looked_up_for_a_link_does_not_grow_with_the_number_of_links(void **state) {
    wheel *w = open_wheel(0);
    uint32_t i;
    (void)state;
    TRUE(longest_walk(inside(w->hub)->sd) > 0 && longest_walk(inside(w->hub)->sd) <= 4);
    for (i = 0; i < SPOKES; i++) {
        TRUE(longest_walk(inside(w->spoke[i])->sd) <= 4);
    }
    close_wheel(w);
}

/* Its messages go round a page of the ring, and leave the rest alone. */
static void a_link_whose_records_are_taken_uses_one_page_of_its_ring(void **state) {
    wheel *w = open_wheel(0);
    const uint8_t *far_line;
    cci__sisci_link *link = link_of(w->mine[0]);
    uint32_t number, laps = 0;
    (void)state;
    far_line = link->out.ring + 100 * CCI__SISCI_LINE;
    for (number = 0; number < 1000; number++) {
        TRUE(cci_send(w->mine[0], &number, 4, NULL, number & 1 ? CCI_FLAG_SILENT : 0) == CCI_SUCCESS);
        expect_from(w, w->hub, w->its[0], number);
        TRUE(cci_send(w->its[0], &number, 4, NULL, number & 2 ? CCI_FLAG_SILENT : 0) == CCI_SUCCESS);
        expect_from(w, w->spoke[0], w->mine[0], number);
        TRUE(look_for(w, w->hub, LOOKS) == NULL);
        TRUE((link->out.head & (link->out.lines - 1)) <= CCI__SISCI_NEAR + 16);
        laps += (link->out.head & (link->out.lines - 1)) == 0;
        if (number == 500) {
            TRUE(laps > 5 && cci__sisci_load(far_line) == 0);
        }
    }
    TRUE(cci__sisci_load(far_line) == 0);
    close_wheel(w);
}

/* ---- the numbers of records come again ----------------------------------------------------------------------------------- */

enum { LARGEST_RING = 4194304, AGES = 2 };

/* A stream one way through the largest ring: that goes through all numbers soonest. */
typedef struct numbers {
    side_t *to;
    cci_connection_t *from;
    cci__sisci_link *link, *its; /* the sender's, the receiver's */
    uint32_t sent, taken;
} numbers;

static void send_number(numbers *n, uint32_t length) {
    char message[CCI__SISCI_SHORT];
    memset(message, 0, sizeof message);
    memcpy(message, &n->sent, sizeof n->sent);
    TRUE(cci_send(n->from, message, length, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
    n->sent++;
}

/* Takes messages as they were sent until so many are left, and finds nothing else if none is. */
static void take_numbers(numbers *n, uint32_t left) {
    cci_event_t *event;
    while (n->sent - n->taken > left) {
        patience_t patience = be_patient();
        while (cci_get_event(n->to->ep, &event) != CCI_SUCCESS) {
            still_patient(&patience, "a message");
        }
        TRUE(event->type == CCI_EVENT_RECV && memcmp(event->recv.ptr, &n->taken, sizeof n->taken) == 0);
        n->taken++;
        drop(event);
    }
    if (left == 0) {
        patience_t patience = be_patient();
        do { /* all is acknowledged: the sender may go on at the front of the ring */
            TRUE(cci_get_event(n->to->ep, &event) == CCI_EAGAIN);
            still_patient(&patience, "an acknowledgement");
        } while (n->its->acknowledged != n->its->in.tail);
    }
}

static uint32_t place_of(const numbers *n) {
    return n->link->out.head & (n->link->out.lines - 1);
}

/* Each line of the ring in its turn. The receiver looks at the next one, in which nothing is but what was left there,
 * except where the sender would see that all is taken, and begin at the front. */
static void go_round(numbers *n) {
    uint32_t begin = n->link->out.head;
    TRUE(place_of(n) == 0);
    cci__sisci_read_ack(n->link); /* it does so at the next sixteenth line, and when the ring is full */
    do {
        send_number(n, 8);
        TRUE(n->link->out.head - begin <= n->link->out.lines);
        take_numbers(n, (n->link->out.head & 15) == 0 ? 1 : 0);
    } while (place_of(n) != 0);
    TRUE(n->link->out.head - begin == n->link->out.lines && n->its->in.tail + 1 == n->link->out.head);
    take_numbers(n, 0);
}

/* A number comes again after 2^31 lines. A record that was left behind in a line which the stream has jumped over ever
 * since has the number of the one that comes there next: the receiver would have it for that. */
static void a_record_that_was_left_behind_is_never_taken_for_the_one_that_has_its_number_again(void **state) {
    numbers n;
    uint32_t age, behind = 0x5eedf00du;
    patience_t patience = be_patient();
    cci_endpoint_t *ep;
    cci_event_t *event;
    (void)state;
    end_test(NULL);
    snprintf(config_text, sizeof config_text, "[shm]\ntransport = sisci\nring = %d\n", (int)LARGEST_RING);
    TRUE(begin_test(NULL) == 0);
    memset(&n, 0, sizeof n);
    n.to = open_door();
    TRUE(cci_create_endpoint(NULL, 0, &ep, NULL) == CCI_SUCCESS); /* it polls: it looks at what is taken when it must */
    TRUE(cci_connect(ep, DOOR_URI, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL) == CCI_SUCCESS);
    while (cci_get_event(ep, &event) != CCI_SUCCESS) {
        poll_all();
        still_patient(&patience, "a connection");
    }
    TRUE(event->type == CCI_EVENT_CONNECT && event->connect.status == CCI_SUCCESS);
    n.from = event->connect.connection;
    drop(event);
    n.link = link_of(n.from);
    n.its = link_of(await_accepted(n.to));
    TRUE(n.link->out.lines == LARGEST_RING / CCI__SISCI_LINE);
    cci__sisci_store(n.link->out.ring + LARGEST_RING, behind);
    take_numbers(&n, 0);
    while (place_of(&n) != 0) {
        send_number(&n, 8);
        take_numbers(&n, 0);
    }
    for (age = 0; age < AGES; age++) {
        uint32_t begun = n.link->out.head;
        go_round(&n);
        while (n.link->out.head - begun != UINT32_C(1) << 31) {
            send_number(&n, CCI__SISCI_SHORT);
            take_numbers(&n, 0);
        }
        TRUE(place_of(&n) == 0);
    }
    go_round(&n);
    TRUE(cci__sisci_load(n.link->out.ring + LARGEST_RING) == behind); /* what lies behind the ring is left alone */
    TRUE(cci_destroy_endpoint(ep) == CCI_SUCCESS);
}

static void a_sleeper_with_many_links_is_woken_by_any_of_them_and_looks_at_few(void **state) {
    wheel *w = open_wheel(1);
    uint32_t number;
    (void)state;
    for (number = 0; number < 500; number++) {
        uint32_t i = any_spoke(w);
        patience_t patience = be_patient();
        while (look_for(w, w->hub, 1) != NULL || is_readable(w->fd)) {
            still_patient(&patience, "sleep");
        }
        TRUE(cci_send(w->mine[i], &number, 4, NULL, 0) == CCI_SUCCESS);
        TRUE(is_readable(w->fd));
        expect_from(w, w->hub, w->its[i], number);
        TRUE(inside(w->hub)->links.hot_count <= CCI__SISCI_OF_MANY + 2);
        while (w->completed <= number) {
            TRUE(look_for(w, w->spoke[i], 1) == NULL);
            still_patient(&patience, "a completion");
        }
    }
    close_wheel(w);
}

/* Messages of all wait for buffers: each that comes free is for the one that has waited longest. */
static void links_that_wait_for_buffers_get_them_in_turn(void **state) {
    wheel *w = open_wheel(0);
    unsigned int got[SPOKES] = {0}, total = 0, i;
    uint32_t room = 1;
    (void)state;
    TRUE(cci_set_opt(w->hub, CCI_OPT_ENDPT_RECV_BUF_COUNT, &room) == CCI_SUCCESS);
    for (i = 0; i < 5 * SPOKES; i++) {
        TRUE(cci_send(w->mine[i % SPOKES], &i, 4, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
    }
    while (total < 5 * SPOKES) {
        cci_event_t *event = look_for(w, w->hub, 4 * SPOKES);
        TRUE(event != NULL && event->type == CCI_EVENT_RECV);
        for (i = 0; w->its[i] != event->recv.connection; i++) {
        }
        got[i]++;
        total++;
        {
            cci_event_t *none = look_for(w, w->hub, LOOKS); /* while it is held, all others stall */
            TRUE(none == NULL);
        }
        drop(event);
    }
    for (i = 0; i < SPOKES; i++) {
        TRUE(got[i] == 5);
    }
    close_wheel(w);
}

/* ---- deadlines of many links ------------------------------------------------------------------------------------------------ */

static cci__sisci_op *first_op(cci_connection_t *connection) {
    return CCI__CONTAINER(link_of(connection)->ops.next, cci__sisci_op, node);
}

static cci__sisci_op *last_op(cci_connection_t *connection) {
    return CCI__CONTAINER(link_of(connection)->ops.prev, cci__sisci_op, node);
}

/* Whether the link's first operation, which has lost its deadline, has one again: then somebody has looked at it. */
static int was_looked_at(cci_connection_t *connection) {
    return first_op(connection)->deadline_ns != 0;
}

/* Each of the hub's links has a message under way, and its deadline is far. Nothing but what a call is about is looked
 * at until then: not the other links, and not what the same link has sent before. */
static void the_clock_is_looked_at_without_looking_at_links_that_nothing_is_new_on(void **state) {
    uint32_t an_hour_us = 3600000000u, i;
    int sleeps;
    (void)state;
    for (sleeps = 0; sleeps < 2; sleeps++) {
        wheel *w = open_wheel(sleeps);
        for (i = 0; i < SPOKES; i++) {
            TRUE(cci_set_opt(w->its[i], CCI_OPT_CONN_SEND_TIMEOUT, &an_hour_us) == CCI_SUCCESS);
            TRUE(cci_send(w->its[i], "here", 4, NULL, 0) == CCI_SUCCESS);
        }
        TRUE(cci_send(w->its[7], "here", 4, NULL, 0) == CCI_SUCCESS);
        cci__sisci_timers(inside(w->hub));
        inside(w->hub)->times.walk_ns = CCI__NEVER;
        for (i = 0; i < SPOKES; i++) {
            TRUE(was_looked_at(w->its[i]));
            first_op(w->its[i])->deadline_ns = 0;
        }
        for (i = 0; i < 10; i++) {
            TRUE(cci_send(w->its[7], "here", 4, NULL, 0) == CCI_SUCCESS);
            TRUE(look_for(w, w->hub, 1) == NULL);
            cci__sisci_timers(inside(w->hub));
            TRUE(last_op(w->its[7])->deadline_ns > inside(w->hub)->base.now_ns);
        }
        for (i = 0; i < SPOKES; i++) {
            TRUE(!was_looked_at(w->its[i]));
        }
        inside(w->hub)->times.due_ns = 1; /* the first of them has come */
        cci__sisci_timers(inside(w->hub));
        for (i = 0; i < SPOKES; i++) {
            TRUE(was_looked_at(w->its[i]));
        }
        TRUE(inside(w->hub)->times.due_ns > inside(w->hub)->base.now_ns && inside(w->hub)->times.due_ns != CCI__NEVER);
        close_wheel(w);
    }
}

/* One of many links has a deadline that comes soon, after or before the others have theirs. */
static void the_deadline_of_one_of_many_links_is_kept(void **state) {
    uint32_t soon_us = 20000, an_hour_us = 3600000000u, i;
    int sleeps;
    (void)state;
    for (sleeps = 0; sleeps < 2; sleeps++) {
        wheel *w = open_wheel(sleeps);
        patience_t patience;
        cci_event_t *event;
        for (i = 0; i < SPOKES; i++) {
            uint32_t *time_us = i == 50 || i == 60 ? &soon_us : &an_hour_us;
            TRUE(cci_set_opt(w->its[i], CCI_OPT_CONN_SEND_TIMEOUT, time_us) == CCI_SUCCESS);
            TRUE(cci_send(w->its[i], "here", 4, NULL, i == 60 ? CCI_FLAG_SILENT : 0) == CCI_SUCCESS);
        }
        patience = be_patient();
        while (cci_get_event(w->hub, &event) != CCI_SUCCESS) {
            still_patient(&patience, "the end of a message's time");
        }
        TRUE(event->type == CCI_EVENT_SEND && event->send.connection == w->its[50]);
        TRUE(event->send.status == CCI_ETIMEDOUT);
        drop(event);
        while (cci_send(w->its[60], "x", 1, NULL, CCI_FLAG_SILENT) != CCI_ERR_DISCONNECTED) {
            (void)cci_get_event(w->hub, &event);
            still_patient(&patience, "the end of a silent message's time");
        }
        close_wheel(w);
    }
}

/* What a sleeper sends has its time from then on, if the peer has taken all before it. */
static void a_silent_message_of_a_sleeper_has_its_whole_time(void **state) {
    cci_os_handle_t fd;
    side_t *server = open_sleeping_door(&fd), *client = side_open();
    cci_connection_t *mine, *its;
    cci__sisci_conn *conn;
    cci__sisci_link *link;
    int i;
    (void)state;
    request(client, CCI_CONN_ATTR_RO, 0);
    mine = await_connection(client);
    its = await_accepted(server);
    conn = (cci__sisci_conn *)(void *)(uintptr_t)its;
    link = link_of(its);
    for (i = 0; i < 3; i++) {
        inside(server->ep)->times.walk_ns = CCI__NEVER;
        TRUE(cci_send(its, "here", 4, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
        TRUE(conn->silent_mark == link->out.head && conn->silent_end == link->out.head);
        TRUE(conn->conn.deadline_ns >= inside(server->ep)->base.now_ns);
        conn->conn.deadline_ns = CCI__NEVER;
        TRUE(cci_send(its, "here", 4, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS); /* that changes nothing */
        TRUE(conn->silent_mark != link->out.head && conn->silent_end == link->out.head);
        TRUE(conn->conn.deadline_ns == CCI__NEVER);
        drop(await(client, CCI_EVENT_RECV));
        drop(await(client, CCI_EVENT_RECV));
        AWAIT(cci__sisci_load(link->in.base + CCI__SISCI_AT_ACK) == link->out.head);
    }
    TRUE(cci_disconnect(mine) == CCI_SUCCESS);
}

/* The peer had no buffer for a while, between two looks at what it says. */
static void a_receiver_that_had_no_buffer_between_two_looks_was_not_ready(void **state) {
    side_t *server = open_door(), *client = side_open();
    cci_connection_t *mine, *its;
    cci__sisci *ep = inside(client->ep);
    uint32_t room = 1;
    (void)state;
    request(client, CCI_CONN_ATTR_RO, 0);
    mine = await_connection(client);
    its = await_accepted(server);
    TRUE(cci_set_opt(server->ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &room) == CCI_SUCCESS);
    client->deaf = 1;
    TRUE(cci_send(mine, "here", 4, NULL, 0) == CCI_SUCCESS && cci_send(mine, "here", 4, NULL, 0) == CCI_SUCCESS);
    cci__sisci_timers(ep);
    TRUE(link_of(mine)->stall.peer_ns == 0);
    {
        cci_event_t *event = await(server, CCI_EVENT_RECV);
        AWAIT(cci__sisci_is_stuck(link_of(its)));
        drop(event);
    }
    drop(await(server, CCI_EVENT_RECV));
    TRUE(!cci__sisci_is_stalled(link_of(mine)));
    ep->times.walk_ns = 0;
    cci__sisci_timers(ep);
    TRUE(link_of(mine)->stall.peer_ns == ep->base.now_ns);
}

/* ---- many endpoints ----------------------------------------------------------------------------------------------------------- */

static unsigned int count_sockets(void) {
    FILE *list = fopen("/proc/net/unix", "r");
    unsigned int count = 0;
    char line[512];
    TRUE(list != NULL);
    while (fgets(line, sizeof line, list)) {
        count += strstr(line, directory) != NULL; /* those that were let in have their listener's name */
    }
    fclose(list);
    return count;
}

/* Whoever opens an endpoint leaves those alone that are there, also when names are looked after. */
static void endpoints_that_are_opened_connect_to_no_other(void **state) {
    enum { ENDPOINTS = 60 };
    cci_endpoint_t *ep[ENDPOINTS];
    uint32_t i;
    (void)state;
    for (i = 0; i < ENDPOINTS; i++) {
        TRUE(cci_create_endpoint(NULL, 0, &ep[i], NULL) == CCI_SUCCESS);
    }
    TRUE(count_sockets() == ENDPOINTS && count_names("o") == ENDPOINTS);
    for (i = 0; i < ENDPOINTS; i++) {
        TRUE(cci_destroy_endpoint(ep[i]) == CCI_SUCCESS);
    }
}

static long resident_bytes(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    long size = 0, resident = 0;
    TRUE(file != NULL && fscanf(file, "%ld %ld", &size, &resident) == 2);
    fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

static void an_idle_endpoint_takes_less_than_64_kibibytes(void **state) {
    enum { ENDPOINTS = 60 };
    cci_endpoint_t *ep[ENDPOINTS];
    long before;
    uint32_t i;
    (void)state;
    TRUE(cci_create_endpoint(NULL, 0, &ep[0], NULL) == CCI_SUCCESS); /* the first brings what all share */
#ifdef __GLIBC__
    malloc_trim(0); /* what earlier tests have used is not there any more */
#endif
    before = resident_bytes();
    for (i = 1; i < ENDPOINTS; i++) {
        TRUE(cci_create_endpoint(NULL, 0, &ep[i], NULL) == CCI_SUCCESS);
    }
    print_message("%ld bytes each\n", (resident_bytes() - before) / (ENDPOINTS - 1));
    TRUE(resident_bytes() - before < (ENDPOINTS - 1) * 65536L || IS_SANITIZED);
    for (i = 0; i < ENDPOINTS; i++) {
        TRUE(cci_destroy_endpoint(ep[i]) == CCI_SUCCESS);
    }
}

/* ---- alarms ----------------------------------------------------------------------------------------------------------------- */

/* Round trips between two sleepers: each message has a deadline, and each of these is later than the one before. */
static void a_sleeper_sets_its_alarm_when_a_deadline_moves_to_an_earlier_time_and_never_else(void **state) {
    enum { TRIPS = 2000 };
    cci_os_handle_t fd;
    side_t *server = open_sleeping_door(&fd), *client = side_open();
    cci_connection_t *mine, *its;
    uint32_t timeout_us = 50000000, i;
    cci_event_t *late;
    unsigned int before;
    (void)state;
    request(client, CCI_CONN_ATTR_RO, 0);
    mine = await_connection(client);
    its = await_accepted(server);
    TRUE(cci_set_opt(its, CCI_OPT_CONN_SEND_TIMEOUT, &timeout_us) == CCI_SUCCESS);
    fall_asleep(server, fd);
    server->deaf = 0;
    before = alarms_set;
    for (i = 0; i < TRIPS; i++) {
        send_patiently(mine, "ping", 4, 0, CCI_FLAG_SILENT);
        drop(await(server, CCI_EVENT_RECV));
        send_patiently(its, "pong", 4, 0, 0);
        drop(await(client, CCI_EVENT_RECV));
        drop(await(server, CCI_EVENT_SEND));
    }
    print_message("%u alarms for %u round trips\n", alarms_set - before, (unsigned int)TRIPS);
    TRUE(alarms_set - before <= 20);
    before = alarms_set;
    timeout_us = 30000;
    TRUE(cci_set_opt(its, CCI_OPT_CONN_SEND_TIMEOUT, &timeout_us) == CCI_SUCCESS);
    client->deaf = 1;
    TRUE(cci_send(its, "late", 4, NULL, 0) == CCI_SUCCESS); /* an earlier deadline than that of the alarm */
    TRUE(alarms_set > before || rings_within(timeout_us)); /* on a slow machine one may be due already */
    fall_asleep(server, fd);
    late = take(server, CCI_EVENT_SEND); /* where that took longer than the time that the message had */
    drop(late ? late : be_woken(server, fd));
}

/* ---- peers that die or stop ----------------------------------------------------------------------------------------------- */

enum { MANY = 50 };

static void connects_many(int in, int out) {
    side_t *side;
    int i;
    begin_child();
    side = side_open();
    for (i = 0; i < MANY; i++) {
        request(side, CCI_CONN_ATTR_RO, 0);
    }
    for (i = 0; i < MANY; i++) {
        cci_connection_t *connection = await_connection(side);
        send_patiently(connection, "here", 4, 0, CCI_FLAG_SILENT);
    }
    say(out, 'r');
    (void)hear_working(in); /* what waits for room is sent meanwhile */
}

static void of_a_dead_peer_only_the_handles_stay_until_they_are_closed(void **state) {
    side_t *server = open_door();
    cci_connection_t *connection[MANY];
    unsigned int descriptors = count_descriptors();
    child c = start(connects_many);
    int i;
    (void)state;
    TRUE(hear_working(c.from) == 'r');
    for (i = 0; i < MANY; i++) {
        connection[i] = await_accepted(server);
    }
    AWAIT(count_of(server, CCI_EVENT_RECV) == MANY);
    kill_child(&c);
    AWAIT(cci_send(connection[0], "x", 1, NULL, CCI_FLAG_SILENT) == CCI_ERR_DISCONNECTED);
    AWAIT(count_descriptors() == descriptors); /* the pipes are closed too */
    for (i = 0; i < MANY; i++) {
        TRUE(cci_send(connection[i], "x", 1, NULL, 0) == CCI_ERR_DISCONNECTED);
        TRUE(cci_disconnect(connection[i]) == CCI_SUCCESS);
    }
    AWAIT(links_of(server->ep) == 0);
}

/* Serves; says how often its own connection was found broken when asked to. */
static void serves(int in, int out) {
    cci_connection_t *connection;
    side_t *side;
    begin_child();
    side = open_door();
    say(out, 'r');
    connection = await_accepted(side);
    say(out, 'c');
    while (hear_working(in) == 's') {
        AWAIT(cci_send(connection, "x", 1, NULL, CCI_FLAG_SILENT) == CCI_ERR_DISCONNECTED);
        say(out, 'd');
    }
}

static void what_a_stopped_peer_does_not_take_in_time_breaks_the_connection_silent_or_not(void **state) {
    static const int flags[] = {0, CCI_FLAG_SILENT};
    int i;
    (void)state;
    for (i = 0; i < 2; i++) {
        child c = start(serves);
        side_t *client = side_open();
        cci_connection_t *connection;
        uint32_t timeout_us = 200000;
        TRUE(hear_working(c.from) == 'r');
        request(client, CCI_CONN_ATTR_RO, 0);
        connection = await_connection(client);
        TRUE(hear_working(c.from) == 'c');
        TRUE(cci_set_opt(connection, CCI_OPT_CONN_SEND_TIMEOUT, &timeout_us) == CCI_SUCCESS);
        stop_child(&c);
        TRUE(cci_send(connection, "late", 4, as_context(1), flags[i]) == CCI_SUCCESS);
        if (flags[i]) {
            AWAIT(cci_send(connection, "x", 1, NULL, CCI_FLAG_SILENT) == CCI_ERR_DISCONNECTED);
        } else {
            await_send(client, connection, as_context(1), CCI_ETIMEDOUT);
            TRUE(cci_send(connection, "x", 1, NULL, 0) == CCI_ERR_DISCONNECTED);
        }
        TRUE(kill(c.pid, SIGCONT) == 0);
        say(c.to, 's');
        TRUE(hear_working(c.from) == 'd'); /* the peer is told */
        request(client, CCI_CONN_ATTR_RO, 0); /* on the same link */
        TRUE(link_of(await_connection(client)) == link_of(connection));
        say(c.to, 'q');
        TRUE(end(&c) == 0);
        side_close(client);
        side_count--;
    }
}

static void silent_messages_that_wait_for_room_give_their_buffers_back_in_time(void **state) {
    side_t *server = open_door(), *client = side_open();
    cci_connection_t *connection;
    uint32_t timeout_us = 100000, sent = 0;
    static const char big[4000];
    int status;
    (void)state;
    request(client, CCI_CONN_ATTR_RU, 0);
    connection = await_connection(client);
    TRUE(cci_set_opt(connection, CCI_OPT_CONN_SEND_TIMEOUT, &timeout_us) == CCI_SUCCESS);
    server->deaf = 1;
    while ((status = cci_send(connection, big, sizeof big, NULL, CCI_FLAG_SILENT)) == CCI_SUCCESS) {
        sent++;
    }
    TRUE(status == CCI_ENOBUFS && sent > 1000);
    AWAIT(cci_send(connection, big, sizeof big, NULL, CCI_FLAG_SILENT) == CCI_ERR_DISCONNECTED);
    server->deaf = 0;
    AWAIT(inside(client->ep)->links.hot_count == 1 && link_of(connection)->items == NULL);
    request(client, CCI_CONN_ATTR_RU, 0);
    TRUE(cci_send(await_connection(client), big, sizeof big, NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
}

/* ---- others who want to read along --------------------------------------------------------------------------------------- */

/* Connects to every segment that it sees, again and again, and holds on to what it gets. */
static void lurks(int in, int out) {
    static sci_remote_segment_t got[256];
    unsigned int count = 0;
    struct pollfd item;
    sci_desc_t sd;
    begin_child();
    sd = open_device();
    say(out, 'r');
    item.fd = in;
    item.events = POLLIN;
    while (poll(&item, 1, 0) == 0) {
        DIR *list = opendir(directory);
        struct dirent *entry;
        TRUE(list != NULL);
        while ((entry = readdir(list)) != NULL) {
            unsigned int id = (unsigned int)strtoul(entry->d_name + 1, NULL, 16);
            sci_error_t error = SCI_ERR_OK;
            if (entry->d_name[0] != 's' || id == 77 || count == 256) {
                continue;
            }
            SCIConnectSegment(sd, &got[count], NODE, id, 0, NULL, NULL, 1000, 0, &error);
            count += error == SCI_ERR_OK;
        }
        closedir(list);
    }
    say(out, count > 0 ? 'g' : 'n');
    while (count > 0) {
        SCIDisconnectSegment(got[--count], 0, NULL);
    }
    close_device(sd);
}

static void nobody_but_the_peer_is_connected_to_an_inbox_of_an_open_link(void **state) {
    child c = start(lurks);
    side_t *server = open_door();
    int i;
    (void)state;
    TRUE(hear_working(c.from) == 'r');
    for (i = 0; i < 40; i++) {
        side_t *client = side_open();
        cci_connection_t *connection;
        unsigned int j;
        request(client, CCI_CONN_ATTR_RO, 0);
        connection = await_connection(client);
        try_connection(connection, server);
        for (j = 0; j < 2; j++) {
            const cci__sisci_link *link = link_of(j ? connection : await_accepted(server));
            TRUE(link->inbox.segment->served.connection_count == 1 && !link->inbox.segment->served.available);
        }
        side_close(client);
        side_count--;
    }
    say(c.to, 'q');
    (void)hear_working(c.from); /* whether it was ever in the way depends on chance */
    TRUE(end(&c) == 0);
}

/* ---- other users --------------------------------------------------------------------------------------------------------------- */

enum { OTHER_USER = 65534, GROUP = 54321 };

static void become_other_user(void) {
    gid_t group = GROUP;
    TRUE(setgroups(1, &group) == 0 && setgid(GROUP) == 0 && setuid(OTHER_USER) == 0);
}

static void serves_as_other_user(int in, int out) {
    static uint8_t memory[100000];
    cci_rma_handle_t *handle;
    cci_connection_t *connection;
    cci_event_t *event;
    uint32_t caps;
    side_t *side;
    begin_child();
    become_other_user();
    TRUE(cci_init(CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS);
    side = open_door();
    TRUE(cci_rma_register(side->ep, memory, sizeof memory, CCI_FLAG_READ | CCI_FLAG_WRITE, &handle) == CCI_SUCCESS);
    say(out, 'r');
    connection = await_accepted(side);
    TRUE(link_of(connection)->peer.is_foreign && !link_of(connection)->peer.vm);
    send_patiently(connection, handle, sizeof *handle, 0, CCI_FLAG_SILENT);
    event = await(side, CCI_EVENT_RECV);
    TRUE(event->recv.len == 5000 && holds_pattern(event->recv.ptr, 5000, 3));
    {   /* what the program reads is out of the peer's reach */
        const cci__sisci_link *link = link_of(connection);
        const uint8_t *at = (const uint8_t *)event->recv.ptr;
        TRUE(at < link->in.base || at >= link->in.base + ((const struct cci__sci_map *)link->inbox.map)->size_bytes);
    }
    TRUE(holds_pattern(memory, sizeof memory, 4));
    drop(event);
    say(out, 'd');
    TRUE(hear_working(in) == 'q');
}

static void a_user_whom_the_group_lets_in_gets_copies_and_no_memory(void **state) {
    static uint8_t memory[100000], bytes[5000];
    cci_rma_handle_t *mine, its;
    cci_connection_t *connection;
    cci_event_t *event;
    side_t *client;
    child c;
    (void)state;
    if (geteuid() != 0) {
        print_message("only root can become another user\n");
        skip();
    }
    setenv("CCI_SISCI_GROUP", "54321", 1);
    TRUE(chown(directory, (uid_t)-1, GROUP) == 0 && chmod(directory, 01770) == 0);
    c = start(serves_as_other_user);
    TRUE(hear(c.from) == 'r');
    client = side_open();
    request(client, CCI_CONN_ATTR_RO, 0);
    connection = await_connection(client);
    TRUE(link_of(connection)->peer.is_foreign && !link_of(connection)->peer.vm);
    event = await(client, CCI_EVENT_RECV);
    memcpy((void *)&its, event->recv.ptr, sizeof its);
    drop(event);
    fill(memory, sizeof memory, 4);
    fill(bytes, sizeof bytes, 3);
    TRUE(cci_rma_register(client->ep, memory, sizeof memory, 0, &mine) == CCI_SUCCESS);
    TRUE(cci_rma(connection, NULL, 0, mine, 0, &its, 0, sizeof memory, NULL, CCI_FLAG_WRITE) == CCI_SUCCESS);
    await_send(client, connection, NULL, CCI_SUCCESS);
    memset(memory, 0, sizeof memory);
    TRUE(cci_rma(connection, NULL, 0, mine, 0, &its, 0, sizeof memory, NULL, CCI_FLAG_READ) == CCI_SUCCESS);
    await_send(client, connection, NULL, CCI_SUCCESS);
    TRUE(holds_pattern(memory, sizeof memory, 4));
    send_patiently(connection, bytes, sizeof bytes, 0, CCI_FLAG_SILENT);
    TRUE(hear_working(c.from) == 'd');
    say(c.to, 'q');
    TRUE(end(&c) == 0);
}

/* ---- containers ----------------------------------------------------------------------------------------------------------- */

/* The first process of another pid namespace. */
static void uses_from_afar(int in, int out) {
    static uint8_t memory[100000];
    cci_rma_handle_t *mine, its;
    cci_connection_t *connection;
    cci_event_t *event;
    pid_t pid;
    int status = -1;
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) {
        say(out, 's');
        return;
    }
    pid = fork();
    TRUE(pid >= 0);
    if (pid > 0) {
        TRUE(waitpid(pid, &status, 0) == pid);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    TRUE(getpid() == 1 && mount("proc", "/proc", "proc", 0, NULL) == 0);
    begin_child();
    side_open();
    request(&sides[0], CCI_CONN_ATTR_RO, 0);
    connection = await_connection(&sides[0]);
    TRUE(!link_of(connection)->peer.vm);
    event = await(&sides[0], CCI_EVENT_RECV);
    memcpy((void *)&its, event->recv.ptr, sizeof its);
    drop(event);
    fill(memory, sizeof memory, 9);
    TRUE(cci_rma_register(sides[0].ep, memory, sizeof memory, 0, &mine) == CCI_SUCCESS);
    TRUE(cci_rma(connection, "done", 4, mine, 0, &its, 0, sizeof memory, NULL, CCI_FLAG_WRITE) == CCI_SUCCESS);
    await_send(&sides[0], connection, NULL, CCI_SUCCESS);
    say(out, 'd');
    (void)hear_working(in);
}

static void containers_that_share_the_directory_reach_each_other_through_the_inboxes(void **state) {
    static uint8_t memory[100000];
    child c = start(uses_from_afar);
    side_t *server = open_door();
    cci_rma_handle_t *handle;
    cci_connection_t *connection;
    cci_event_t *event;
    struct pollfd item;
    int its_end;
    (void)state;
    item.fd = c.from;
    item.events = POLLIN;
    while (poll(&item, 1, 0) == 0 && count_of(server, CCI_EVENT_ACCEPT) == 0) {
        poll_all();
    }
    if (count_of(server, CCI_EVENT_ACCEPT) == 0) {
        char letter = hear(c.from);
        (void)end(&c);
        TRUE(letter == 's');
        print_message("this process may not make namespaces\n");
        skip();
    }
    connection = await_accepted(server);
    TRUE(cci_rma_register(server->ep, memory, sizeof memory, CCI_FLAG_WRITE, &handle) == CCI_SUCCESS);
    send_patiently(connection, handle, sizeof *handle, 0, CCI_FLAG_SILENT);
    event = await(server, CCI_EVENT_RECV);
    TRUE(event->recv.len == 4 && holds_pattern(memory, sizeof memory, 9));
    drop(event);
    TRUE(hear_working(c.from) == 'd');
    its_end = dup(c.from);
    TRUE(its_end >= 0);
    kill_child(&c); /* whose process in the namespace sees the end of its pipe */
    AWAIT(cci_send(connection, "x", 1, NULL, CCI_FLAG_SILENT) == CCI_ERR_DISCONNECTED);
    TRUE(hear_working(its_end) == 0); /* and has put its names away when it has ended, too */
    close(its_end);
}

static void a_server_of_another_version_refuses_a_client_at_once(void **state) {
    side_t *server = open_door(), *client = side_open();
    cci_event_t *event;
    (void)state;
    cci__sisci_store(&inside(server->ep)->entrance.listener->magic, CCI__SISCI_MAGIC - 1);
    request(client, CCI_CONN_ATTR_RO, 0);
    event = await(client, CCI_EVENT_CONNECT);
    TRUE(event->connect.status == CCI_ECONNREFUSED && strstr(log_text, "another version") != NULL);
    drop(event);
    cci__sisci_store(&inside(server->ep)->entrance.listener->magic, CCI__SISCI_MAGIC);
    request(client, CCI_CONN_ATTR_RO, 0);
    try_connection(await_connection(client), server);
}

/* ---- the directory ---------------------------------------------------------------------------------------------------------- */

/* Removes all names, and the directory too. */
static void wipe(int with_directory) {
    nftw(directory, forget_entry, 8, FTW_DEPTH | FTW_PHYS);
    TRUE(!with_directory || rmdir(directory) == 0);
}

static void a_server_whose_names_were_wiped_is_found_again(void **state) {
    side_t *server = open_door(), *client = side_open(), *late = NULL;
    cci_connection_t *first;
    int i;
    (void)state;
    request(client, CCI_CONN_ATTR_RO, 0);
    first = await_connection(client);
    for (i = 0; i < 2; i++) {
        wipe(i);
        inside(server->ep)->sd->names_ns = inside(client->ep)->sd->names_ns = 0; /* it is time to look */
        if (i) {
            inside(late->ep)->sd->names_ns = 0;
        }
        AWAIT(inside(server->ep)->sd->names_ns != 0 && inside(client->ep)->sd->names_ns != 0 &&
              (late == NULL || inside(late->ep)->sd->names_ns != 0));
        TRUE(count_names("o") == (i ? 3 : 2)); /* theirs, and that of the one who came meanwhile */
        late = side_open();
        request(late, CCI_CONN_ATTR_RO, 0);
        try_connection(await_connection(late), server);
        try_connection(first, server); /* what is open goes on */
    }
}

static void a_directory_that_belongs_to_another_user_is_passed_over_with_a_message(void **state) {
    static char place[128], home[128];
    cci_endpoint_t *ep;
    (void)state;
    if (geteuid() != 0) {
        print_message("only root can give a directory away\n");
        skip();
    }
    unsetenv("CCI_SISCI_DIR");
    unsetenv("XDG_RUNTIME_DIR");
    snprintf(place, sizeof place, "%s/cci-sisci-0", directory);
    snprintf(home, sizeof home, "%s/home", directory);
    TRUE(mkdir(place, 0700) == 0 && chown(place, OTHER_USER, 0) == 0 && mkdir(home, 0700) == 0);
    setenv("HOME", home, 1);
    shared_root = directory;
    log_text[0] = '\0';
    TRUE(cci_create_endpoint(NULL, 0, &ep, NULL) == CCI_SUCCESS);
    TRUE(strstr(log_text, "belongs to another user") != NULL && strstr(inside(ep)->sd->path, "/.cci-sisci") != NULL);
    TRUE(cci_destroy_endpoint(ep) == CCI_SUCCESS);
    TRUE(chown(place, 0, 0) == 0); /* the user has it back */
    TRUE(cci_create_endpoint(NULL, 0, &ep, NULL) == CCI_SUCCESS && strcmp(inside(ep)->sd->path, place) == 0);
    TRUE(cci_destroy_endpoint(ep) == CCI_SUCCESS);
    setenv("XDG_RUNTIME_DIR", home, 1); /* a session's own comes first */
    TRUE(cci_create_endpoint(NULL, 0, &ep, NULL) == CCI_SUCCESS && strstr(inside(ep)->sd->path, "home/cci-sisci") != NULL);
    TRUE(cci_destroy_endpoint(ep) == CCI_SUCCESS);
    unsetenv("XDG_RUNTIME_DIR");
    shared_root = "/dev/shm";
    setenv("CCI_SISCI_DIR", directory, 1);
    wipe(0);
}

/* A peer says that its messages have 64 bytes at most, and sends longer ones, in the ring and in blocks. */
static void a_message_that_is_longer_than_the_peer_had_agreed_to_is_not_delivered(void **state) {
    static const cci_conn_attribute_t attributes[] = {CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU, CCI_CONN_ATTR_UU};
    static const uint32_t lengths[] = {64, 65, 100, 200, 1500, 8192, 12};
    static uint8_t bytes[8192];
    side_t *server = open_door(), *client = side_open();
    uint32_t i, round;
    (void)state;
    for (i = 0; i < 3; i++) {
        cci_connection_t *connection, *accepted;
        cci_event_t *event;
        request(client, attributes[i], 0);
        AWAIT(count_of(client, CCI_EVENT_CONNECT) == 1 && count_of(server, CCI_EVENT_ACCEPT) == 1);
        event = take(client, CCI_EVENT_CONNECT);
        connection = event->connect.connection;
        drop(event);
        event = take(server, CCI_EVENT_ACCEPT);
        accepted = event->accept.connection;
        drop(event);
        *(uint32_t *)(uintptr_t)&accepted->max_send_size = 64; /* as the client's card would have had it */
        for (round = 0; round < sizeof lengths / sizeof lengths[0]; round++)
            TRUE(cci_send(connection, bytes, lengths[round], NULL, CCI_FLAG_SILENT) == CCI_SUCCESS);
        AWAIT(count_of(server, CCI_EVENT_RECV) == 2);
        event = take(server, CCI_EVENT_RECV);
        TRUE(event->recv.len == 64);
        drop(event);
        event = take(server, CCI_EVENT_RECV);
        TRUE(event->recv.len == 12);
        drop(event);
    }
}

/* ---- limits -------------------------------------------------------------------------------------------------------------- */

static void thousands_of_connections_share_a_link(void **state) {
    side_t *server = open_door(), *client = side_open();
    unsigned int before = count_descriptors(), i;
    (void)state;
    for (i = 0; i < 3000; i++) {
        request(client, i & 1 ? CCI_CONN_ATTR_RO : CCI_CONN_ATTR_RU, 0);
        if (i % 100 == 99) {
            AWAIT(count_of(client, CCI_EVENT_CONNECT) == 100 && count_of(server, CCI_EVENT_ACCEPT) == 100);
            while (client->count > 0) {
                TRUE(client->queue[0]->connect.status == CCI_SUCCESS);
                drop(take(client, CCI_EVENT_CONNECT));
                drop(take(server, CCI_EVENT_ACCEPT));
            }
        }
    }
    TRUE(links_of(client->ep) == 1 && links_of(server->ep) == 1);
    TRUE(count_descriptors() - before <= 4); /* both ends are in this process: the head comment says two each */
}

/* One more than the highest descriptor that is open. */
static rlim_t descriptors_end(void) {
    int fd = dup(0);
    TRUE(fd >= 0);
    close(fd);
    return (rlim_t)fd;
}

/* Makes two endpoints and connects them with no more than `spare` descriptors; 1 when all went well. What does not work
 * says why, and what could be made is whole. */
static int connect_with(rlim_t spare) {
    struct timeval second = {0, 300000};
    cci_endpoint_t *ep[2] = {NULL, NULL};
    cci_event_t *event;
    int i, status = CCI_SUCCESS, works = 0;
    set_descriptor_limit(descriptors_end() + spare);
    for (i = 0; i < 2 && status == CCI_SUCCESS; i++) {
        log_text[0] = '\0';
        status = cci_create_endpoint_at(NULL, i ? NULL : DOOR, 0, &ep[i], NULL);
        TRUE(status == CCI_SUCCESS || strstr(log_text, strerror(EMFILE)) != NULL); /* the log says what is missing */
        if (status != CCI_SUCCESS && status != CCI_ENOMEM) {
            failed(__LINE__, "cci_create_endpoint_at", (unsigned int)status);
        }
    }
    for (i = 0; i < 2 && ep[i] != NULL; i++) {
        sides[side_count].ep = ep[i];
        sides[side_count].handler = i ? NULL : accept_all;
        side_count++;
    }
    if (status == CCI_SUCCESS) {
        status = cci_connect(ep[1], DOOR_URI, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &second);
        TRUE(status == CCI_SUCCESS || status == CCI_ENOMEM);
        if (status == CCI_SUCCESS) {
            event = await(&sides[1], CCI_EVENT_CONNECT);
            TRUE(event->connect.status == CCI_SUCCESS || event->connect.status == CCI_ETIMEDOUT);
            works = event->connect.status == CCI_SUCCESS;
            TRUE(works == (event->connect.connection != NULL));
            drop(event);
        }
    }
    set_descriptor_limit(1024);
    while (side_count > 0) {
        side_close(&sides[--side_count]);
    }
    return works;
}

static void who_runs_out_of_descriptors_is_told_and_leaves_nothing_behind(void **state) {
    unsigned int descriptors = count_descriptors(), names = count_names(NULL), worked = 0;
    size_t blocks = live_blocks;
    rlim_t spare;
    (void)state;
    for (spare = 0; spare < 40 && worked < 3; spare++) {
        worked += connect_with(spare) != 0;
        TRUE(count_descriptors() == descriptors && count_names(NULL) == names && live_blocks == blocks);
    }
    TRUE(spare > 10 && worked == 3);
}

/* The kernel would kill a process that makes a file longer than it may. */
static void a_limit_of_file_sizes_is_a_status_and_a_line_in_the_log(void **state) {
    struct rlimit old, small;
    cci_endpoint_t *ep = NULL;
    int status;
    (void)state;
    TRUE(getrlimit(RLIMIT_FSIZE, &old) == 0);
    small = old;
    small.rlim_cur = 1024;
    TRUE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    log_text[0] = '\0';
    status = cci_create_endpoint(NULL, 0, &ep, NULL);
    TRUE(setrlimit(RLIMIT_FSIZE, &old) == 0);
    TRUE(status == CCI_ERROR && strstr(log_text, strerror(EFBIG)) != NULL);
}

static void a_link_goes_on_when_there_is_no_descriptor_for_another(void **state) {
    side_t *server = open_door(), *client = side_open(), *other = side_open();
    struct timeval moment = {0, 300000};
    cci_connection_t *connection;
    cci_event_t *event;
    int status;
    (void)state;
    request(client, CCI_CONN_ATTR_RO, 0);
    connection = await_connection(client);
    set_descriptor_limit(descriptors_end());
    status = cci_connect(client->ep, other->uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &moment);
    TRUE(status == CCI_ENOMEM);
    set_descriptor_limit(1024);
    set_descriptor_limit(descriptors_end() + 3);
    status = cci_connect(client->ep, other->uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, &moment);
    if (status == CCI_SUCCESS) {
        event = await(client, CCI_EVENT_CONNECT);
        TRUE(event->connect.status == CCI_ETIMEDOUT);
        drop(event);
    }
    try_connection(connection, server);
    set_descriptor_limit(1024);
    other->handler = accept_all;
    TRUE(cci_connect(client->ep, other->uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL) == CCI_SUCCESS);
    try_connection(await_connection(client), other);
    try_connection(connection, server);
}

/* Knocks for as long as the other process lives, and says when it was let in. */
static void knocks_until_let_in(int in, int out) {
    begin_child();
    (void)side_open();
    say(out, 'r');
    (void)hear_working(in);
    request(&sides[0], CCI_CONN_ATTR_RO, 0);
    (void)await_connection(&sides[0]);
    say(out, 'c');
    (void)hear_working(in);
}

static unsigned int count_in_log(const char *text) {
    const char *at = log_text;
    unsigned int count = 0;
    while ((at = strstr(at, text)) != NULL) {
        count++;
        at += strlen(text);
    }
    return count;
}

static void who_can_let_nobody_in_says_so_once_until_somebody_came_in(void **state) {
    static const char text[] = "can't let anybody in";
    side_t *server = open_door();
    cci__sci_desc_t sd = inside(server->ep)->sd;
    unsigned int descriptors = count_descriptors(), times;
    (void)state;
    for (times = 1; times <= 2; times++) {
        child c = start(knocks_until_let_in);
        int looks;
        TRUE(hear_working(c.from) == 'r');
        AWAIT(count_descriptors() == descriptors + 2); /* one that is given back later would let somebody in */
        set_descriptor_limit(descriptors_end());
        say(c.to, 'k');
        log_text[0] = '\0';
        AWAIT(count_in_log(text) > 0);
        for (looks = 0; looks < 10; looks++) {
            AWAIT(sd->listener.slot < 0);  /* it rests ... */
            sd->listener.back_ns = 0;      /* ... and has rested long enough: it looks, and finds it cannot */
            AWAIT(sd->listener.back_ns != 0);
            poll_all();
        }
        TRUE(count_in_log(text) == 1);
        set_descriptor_limit(1024);
        TRUE(hear_working(c.from) == 'c');
        say(c.to, 'q');
        TRUE(end(&c) == 0);
    }
}

#define LINK_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void) {
    const struct CMUnitTest tests[] = {
        LINK_TEST(clients_that_are_killed_while_they_knock_keep_nobody_out),
        LINK_TEST(the_death_of_a_peer_is_noticed_though_another_child_was_born_since),
        LINK_TEST(a_link_without_connections_is_closed_and_made_anew),
        LINK_TEST(a_sleeping_client_closes_its_idle_link),
        LINK_TEST(links_that_nothing_happens_to_are_not_looked_at_but_not_forgotten),
        LINK_TEST(a_program_is_woken_when_it_returns_what_a_message_waits_for),
        LINK_TEST(a_program_is_woken_when_it_returns_the_request_whose_buffer_a_message_waits_for),
        LINK_TEST(a_program_is_woken_when_it_returns_the_event_that_the_end_of_a_connection_waits_for),
        LINK_TEST(a_request_that_waits_for_space_for_its_refusal_keeps_a_server_awake_when_there_is_some),
        LINK_TEST(an_acknowledgement_behind_a_request_that_waits_for_space_is_heard),
        LINK_TEST(an_answer_that_waits_for_space_keeps_a_server_awake_when_there_is_some),
        LINK_TEST(what_is_acknowledged_while_a_server_looks_at_the_clock_keeps_it_awake),
        LINK_TEST(a_withdrawn_message_that_waits_for_space_lets_its_receiver_sleep),
        LINK_TEST(a_message_whose_record_was_consumed_is_not_cancelled_when_its_time_is_over),
        LINK_TEST(a_message_of_any_of_many_links_is_found_in_the_next_calls),
        LINK_TEST(a_message_of_a_link_of_many_costs_no_word_besides_its_record_and_mark),
        LINK_TEST(all_that_waits_on_many_links_comes_in_order_and_is_acknowledged),
        LINK_TEST(a_message_whose_mark_is_lost_is_found_in_turn),
        LINK_TEST(what_is_looked_up_for_a_link_does_not_grow_with_the_number_of_links),
        LINK_TEST(a_link_whose_records_are_taken_uses_one_page_of_its_ring),
        LINK_TEST(a_record_that_was_left_behind_is_never_taken_for_the_one_that_has_its_number_again),
        LINK_TEST(a_sleeper_with_many_links_is_woken_by_any_of_them_and_looks_at_few),
        LINK_TEST(links_that_wait_for_buffers_get_them_in_turn),
        LINK_TEST(the_clock_is_looked_at_without_looking_at_links_that_nothing_is_new_on),
        LINK_TEST(the_deadline_of_one_of_many_links_is_kept),
        LINK_TEST(a_silent_message_of_a_sleeper_has_its_whole_time),
        LINK_TEST(a_receiver_that_had_no_buffer_between_two_looks_was_not_ready),
        LINK_TEST(endpoints_that_are_opened_connect_to_no_other),
        LINK_TEST(an_idle_endpoint_takes_less_than_64_kibibytes),
        LINK_TEST(a_sleeper_sets_its_alarm_when_a_deadline_moves_to_an_earlier_time_and_never_else),
        LINK_TEST(of_a_dead_peer_only_the_handles_stay_until_they_are_closed),
        LINK_TEST(what_a_stopped_peer_does_not_take_in_time_breaks_the_connection_silent_or_not),
        LINK_TEST(silent_messages_that_wait_for_room_give_their_buffers_back_in_time),
        LINK_TEST(nobody_but_the_peer_is_connected_to_an_inbox_of_an_open_link),
        LINK_TEST(a_user_whom_the_group_lets_in_gets_copies_and_no_memory),
        LINK_TEST(containers_that_share_the_directory_reach_each_other_through_the_inboxes),
        LINK_TEST(a_message_that_is_longer_than_the_peer_had_agreed_to_is_not_delivered),
        LINK_TEST(thousands_of_connections_share_a_link),
        LINK_TEST(who_runs_out_of_descriptors_is_told_and_leaves_nothing_behind),
        LINK_TEST(a_server_of_another_version_refuses_a_client_at_once),
        LINK_TEST(a_server_whose_names_were_wiped_is_found_again),
        LINK_TEST(a_directory_that_belongs_to_another_user_is_passed_over_with_a_message),
        LINK_TEST(a_limit_of_file_sizes_is_a_status_and_a_line_in_the_log),
        LINK_TEST(a_link_goes_on_when_there_is_no_descriptor_for_another),
        LINK_TEST(who_can_let_nobody_in_says_so_once_until_somebody_came_in),
    };
    return cmocka_run_group_tests_name("test_sisci_links", tests, NULL, NULL);
}
