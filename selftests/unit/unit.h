/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmocka wants these four before it, in this order. */
#ifndef HEADGATE_UNIT_H
#define HEADGATE_UNIT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#endif
