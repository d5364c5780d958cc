/* SPDX-License-Identifier: MIT OR Unlicense */
#define CCI_IMPLEMENTATION
#include <cci_udp.h>
#include <cci.h>
#include <stdio.h>

int main(void) {
    uint32_t caps;
    int status = cci_init(CCI_ABI_VERSION, 0, &caps);
    printf("CCI %d.%d.%d: %s\n", CCI_VERSION_MAJOR, CCI_VERSION_MINOR, CCI_VERSION_PATCH,
           cci_strerror(NULL, (cci_status_t)status));
    return status != CCI_SUCCESS || cci_finalize() != CCI_SUCCESS;
}
