/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What can be judged once all statements are known: names of backends,
 * duplicates, what can take which transport. Inside of config/ only.
 */
#ifndef HEADGATE_CONFIG_VALIDATE_H
#define HEADGATE_CONFIG_VALIDATE_H

#include "builder.h"

/* Fills in what follows from other lines, and reports the rest. */
void config_validate(struct config_builder *b);

/* The parts of it that have files of their own. */
void config_index_backends(struct config_builder *b);
void config_resolve_references(struct config_builder *b);
bool config_has_quic_listener(const struct config *c);
void config_find_duplicate_routes(struct config_builder *b);

#endif
