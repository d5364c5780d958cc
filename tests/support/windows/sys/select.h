/* sys/select.h - see posix.h. SPDX-License-Identifier: MIT OR Unlicense */
