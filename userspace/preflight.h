/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading the configuration while there is no daemon yet that could log. */
#ifndef HEADGATE_PREFLIGHT_H
#define HEADGATE_PREFLIGHT_H

#include "config/config.h"

/*
 * `headgated -t`: says on stderr what is wrong with the file, and with this
 * host as far as that shows. 0, or -EINVAL: it is bad.
 */
int preflight_check(const char *path);

/*
 * For a start. What is wrong goes to stderr as it is when the configuration is
 * bad: NULL. Else it is the first lines of the log, which has its format now.
 */
struct config *preflight_load(const char *path);

#endif
