/* user.c - the smallest program that has all of the library: compiled for other machines with warnings as errors.
 * SPDX-License-Identifier: MIT OR Unlicense */
#define CCI_IMPLEMENTATION
#include "cci_udp.h"

#include "cci.h"

int main(void) {
    uint32_t caps;
    return cci_init(CCI_ABI_VERSION, 0, &caps) || cci_finalize();
}
