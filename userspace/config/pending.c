// SPDX-License-Identifier: GPL-2.0-or-later
#include "pending.h"

#include "report.h"

static const char *const pending[NR_FEATURES] = {
	[FEATURE_INTERFACE] = "interface",
	[FEATURE_GUARD] = "guard",
	[FEATURE_LISTEN_QUIC] = "listen ... quic",
	[FEATURE_ROUTE_QUIC] = "route ... quic",
	[FEATURE_PATH] = "path",
	[FEATURE_CONNECTIONS_PER_CLIENT] = "limit connections ... per client",
	[FEATURE_NEW_CONNECTIONS] = "limit new-connections",
	[FEATURE_QUIC_INITIALS] = "limit quic-initials",
	[FEATURE_SYNS] = "limit syns",
	[FEATURE_LONG_HEADERS] = "limit long-headers",
	[FEATURE_PENALTY] = "limit penalty",
	[FEATURE_PROVE_YOURSELF] = "limit prove-yourself",
	[FEATURE_CLIENT_PREFIX] = "client prefix",
	[FEATURE_ALLOW] = "allow",
	[FEATURE_BLOCK] = "block",
	[FEATURE_REFLECTOR_PORTS] = "reflector ports",
};

void config_warn_pending(struct config_builder *b, enum config_feature feature,
			 const struct config_location *at)
{
	if (pending[feature])
		config_warn(b, at, "`%s` is not enforced by this build",
			    pending[feature]);
}

void config_end_line(FILE *out, enum config_feature feature)
{
	fputs(pending[feature] ? " # not enforced by this build\n" : "\n",
	      out);
}
