/* delays.h - delays inside software SISCI: at random, or until a test says so.
 * SPDX-License-Identifier: MIT OR Unlicense
 *
 * Include it before cci_sisci.h. The environment variable CCI_TEST_DELAYS = N makes every process sleep for up to N
 * microseconds at one in eight of the steps that the library names, which is where others can come in between. A program
 * sets delays_us itself where it wants delays without being asked. A test holds its process at one step with held_at, after
 * that has been passed held_skips times: the process says 'h' to held_out there, and goes on when held_in has a letter. With
 * held_frozen the thread does not sleep in a system call of its own meanwhile: the system has put it off (state D).
 */
#ifndef TESTS_DELAYS_H
#define TESTS_DELAYS_H

#define CCI__SCI_DELAY_POINT(point) delay_at(point)
#define CCI__SCI_SWEEP_PAUSE_S 0 /* each device that is opened looks for what the dead have left */

static void delay_at(int point);

#endif

#if defined(CCI_SISCI_IMPLEMENTED) && !defined(TESTS_DELAYS_DEFINED)
#define TESTS_DELAYS_DEFINED

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static int held_at = -1, held_skips = 0, held_in = -1, held_out = -1, held_frozen = 0;
static long delays_us = -1; /* the longest; -1: not known yet */

/* What a process reads that shares this one's memory: the thread that has made it is put off until it ends. */
static int hold_in_another(void *letter) {
    (void)syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0UL, 0UL, 0UL);
    return (int)syscall(SYS_read, held_in, letter, 1UL);
}

static void hold(void) {
    static uint64_t stack[8192];
    char letter = 'h';
    ssize_t n;
    CCI__SCI_STORE(held_at, -1);
    n = write(held_out, &letter, 1);
    if (n == 1 && held_frozen) {
        pid_t pid = clone(hold_in_another, stack + 8192, CLONE_VM | CLONE_VFORK, &letter);
        n = waitpid(pid, NULL, __WALL) == pid ? 0 : -1;
    }
    while (n == 1 && read(held_in, &letter, 1) < 0 && errno == EINTR) {
    }
}

static void delay_at(int point) {
    long longest_us = CCI__SCI_LOAD(delays_us);
    int error = errno;
    if (longest_us < 0) {
        const char *text = getenv("CCI_TEST_DELAYS");
        longest_us = text ? strtol(text, NULL, 10) : 0;
        CCI__SCI_STORE(delays_us, longest_us);
    }
    if (point == CCI__SCI_LOAD(held_at) && held_skips-- == 0) {
        hold();
    }
    if (longest_us > 0) {
        uint64_t dice = cci__sci_random();
        if (dice % 8 == 0) {
            struct timespec t = {0, 0};
            long us = (long)((dice >> 8) % (uint64_t)longest_us);
            t.tv_sec = us / 1000000;
            t.tv_nsec = us % 1000000 * 1000;
            (void)nanosleep(&t, NULL);
        }
    }
    errno = error;
}

#endif
