// SPDX-License-Identifier: GPL-2.0-or-later
#include "report.h"
#include "statement.h"

static const char *const names[NR_OPTIONS] = {
	[OPTION_GENERIC] = "generic",
	[OPTION_DORMANT] = "dormant",
	[OPTION_WEIGHT] = "weight",
	[OPTION_BACKUP] = "backup",
	[OPTION_PROXY] = "proxy",
	[OPTION_BALANCE] = "balance",
	[OPTION_CHECK] = "check",
	[OPTION_CHECK_EVERY] = "every",
	[OPTION_CHECK_TIMEOUT] = "timeout",
	[OPTION_CHECK_RISE] = "rise",
	[OPTION_CHECK_FALL] = "fall",
	[OPTION_PATH] = "path",
	[OPTION_TCP] = "tcp",
	[OPTION_QUIC] = "quic",
	[OPTION_ALPN] = "alpn",
};

bool config_option_once(struct config_builder *b, enum config_option option,
			const struct config_location *at)
{
	if (b->seen & 1U << option) {
		config_error(b, at, "`%s` is given twice", names[option]);
		return false;
	}
	b->seen |= 1U << option;
	return true;
}
