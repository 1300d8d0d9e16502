/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the language says and this build does not do yet: one row each in
 * pending.c. Whoever makes one work removes the row. Inside of config/ only.
 */
#ifndef HEADGATE_CONFIG_PENDING_H
#define HEADGATE_CONFIG_PENDING_H

#include "builder.h"

enum config_feature {
	FEATURE_INTERFACE,
	FEATURE_GUARD,
	FEATURE_LISTEN_QUIC,
	FEATURE_ROUTE_QUIC,
	FEATURE_PATH,
	FEATURE_CONNECTIONS_PER_CLIENT,
	FEATURE_NEW_CONNECTIONS,
	FEATURE_QUIC_INITIALS,
	FEATURE_SYNS,
	FEATURE_LONG_HEADERS,
	FEATURE_PENALTY,
	FEATURE_PROVE_YOURSELF,
	FEATURE_CLIENT_PREFIX,
	FEATURE_ALLOW,
	FEATURE_BLOCK,
	FEATURE_TRUST_PROXY,
	FEATURE_REFLECTOR_PORTS,
	NR_FEATURES
};

/* Warns when this build does not have the feature. */
void config_warn_pending(struct config_builder *b, enum config_feature feature,
			 const struct config_location *at);

/* Ends a printed line: with a comment when nothing obeys it yet. */
void config_end_line(FILE *out, enum config_feature feature);

#endif
