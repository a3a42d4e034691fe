/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* cmocka, and the headers that it wants to come before it. */
#ifndef HARNESS_LIB_TEST_H
#define HARNESS_LIB_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
