/* sisci_api.h - the two lines with which programs written for SISCI compile unchanged.
 * SPDX-License-Identifier: MIT OR Unlicense
 */
#define CCI_SISCI_API
#include "cci_sisci.h"
