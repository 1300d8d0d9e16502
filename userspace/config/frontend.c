// SPDX-License-Identifier: GPL-2.0-or-later
#include <ctype.h>
#include <net/if.h>
#include <string.h>

#include "pending.h"
#include "report.h"
#include "statement.h"
#include "value.h"

#define NR_REFLECTOR_PORTS_MAX                                                 \
	(sizeof(((struct config *)0)->reflector_ports) / sizeof(uint16_t))

/* As the kernel's dev_valid_name(). */
static bool is_interface_name(const char *name)
{
	size_t i;

	if (!*name || strlen(name) >= IF_NAMESIZE || !strcmp(name, ".") ||
	    !strcmp(name, ".."))
		return false;
	for (i = 0; name[i]; i++)
		if (name[i] == '/' || name[i] == ':' ||
		    !isgraph((unsigned char)name[i]))
			return false;
	return true;
}

void config_add_interface(struct config_builder *b,
			  const struct config_location *at,
			  const struct config_word *name)
{
	struct config *c = b->config;
	struct config_interface *interface;
	unsigned int i;

	if (!is_interface_name(name->text)) {
		config_error(b, &name->at,
			     "%s cannot be the name of an interface (1 to %d "
			     "characters, no '/' or ':')",
			     config_quote(b, name->text), IF_NAMESIZE - 1);
		return;
	}
	for (i = 0; i < c->nr_interfaces; i++) {
		if (strcmp(c->interfaces[i].name, name->text))
			continue;
		config_error(b, &name->at,
			     "interface %s was named before, at %s",
			     config_quote(b, name->text),
			     config_place(b, &c->interfaces[i].at));
		return;
	}
	config_warn_pending(b, FEATURE_INTERFACE, at);
	interface = config_append(b, c->interfaces, c->nr_interfaces);
	if (!interface)
		return;
	interface->at = *at;
	interface->name = config_keep(b, name->text);
	interface->may_be_generic = b->seen & 1U << OPTION_GENERIC;
	interface->is_dormant = b->seen & 1U << OPTION_DORMANT;
}

/* Why `text` is no address to listen on. */
static void explain_address(struct config_builder *b,
			    const struct config_word *w)
{
	const char *quoted = config_quote(b, w->text);
	const char *colon = strrchr(w->text, ':');
	struct address a;

	if (address_parse_host(w->text, &a))
		config_error(b, &w->at, "%s has no %sport; write it as '%s'",
			     quoted,
			     colon && w->text[0] != '[' ? "brackets and no "
							: "",
			     colon ? "[2001:db8::1]:443" : "192.0.2.1:443");
	else if (strspn(w->text, "0123456789") == strlen(w->text))
		config_error(b, &w->at,
			     "%s is not an address with a port; for the port "
			     "on every address write ':%s'",
			     quoted, w->text);
	else if (w->text[0] == '*' && colon == w->text + 1)
		config_error(b, &w->at,
			     "%s is not an address; for every address write "
			     "the port alone, such as ':443'",
			     quoted);
	else if (colon &&
		 strspn(colon + 1, "0123456789") == strlen(colon + 1))
		config_error(b, &w->at,
			     "%s is not an IP address with a port from 1 to "
			     "65535, such as '192.0.2.1:443', "
			     "'[2001:db8::1]:443' or ':443'",
			     quoted);
	else
		config_error(b, &w->at,
			     "%s is not an address with a port, such as "
			     "'192.0.2.1:443', '[2001:db8::1]:443' or ':443'",
			     quoted);
}

static bool is_taken(struct config_builder *b, const char *kind,
		     const struct config_listen *listens, unsigned int nr,
		     const struct config_word *w,
		     const struct config_listen *wanted)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		const struct config_listen *l = &listens[i];

		if (!(l->transports & wanted->transports) ||
		    !address_equal(&l->address, &wanted->address))
			continue;
		config_error(b, &w->at, "%s is already in `%s` at %s",
			     config_quote(b, w->text), kind,
			     config_place(b, &l->at));
		return true;
	}
	return false;
}

static bool read_listen(struct config_builder *b,
			const struct config_word *address,
			const struct config_transports *transports,
			struct config_listen *out)
{
	const struct config *c = b->config;

	if (!address_parse(address->text, &out->address)) {
		explain_address(b, address);
		return false;
	}
	out->transports = transports->set;
	return !is_taken(b, "listen", c->listens, c->nr_listens, address,
			 out) &&
	       !is_taken(b, "guard", c->guards, c->nr_guards, address, out);
}

void config_add_listen(struct config_builder *b,
		       const struct config_location *at,
		       const struct config_word *address,
		       const struct config_transports *transports,
		       const struct config_word *target)
{
	struct config *c = b->config;
	struct config_listen wanted = { .at = *at }, *l;

	wanted.has_target = target->text;
	if (!read_listen(b, address, transports, &wanted))
		return;
	if (transports->set & TRANSPORT_QUIC)
		config_warn_pending(b, FEATURE_LISTEN_QUIC,
				    &transports->quic_at);
	l = config_append(b, c->listens, c->nr_listens);
	if (!l)
		return;
	*l = wanted;
	if (target->text)
		config_refer(b, target, REFERENCE_LISTEN, c->nr_listens - 1);
}

void config_add_guard(struct config_builder *b,
		      const struct config_location *at,
		      const struct config_word *address,
		      const struct config_transports *transports)
{
	struct config *c = b->config;
	struct config_listen wanted = { .at = *at }, *guard;

	if (!read_listen(b, address, transports, &wanted))
		return;
	config_warn_pending(b, FEATURE_GUARD, at);
	guard = config_append(b, c->guards, c->nr_guards);
	if (guard)
		*guard = wanted;
}

void config_begin_reflector_ports(struct config_builder *b,
				  const struct config_location *at)
{
	if (!config_once(b, ONCE_REFLECTOR_PORTS, at, "reflector ports"))
		return;
	config_warn_pending(b, FEATURE_REFLECTOR_PORTS, at);
	b->config->nr_reflector_ports = 0;
}

void config_add_reflector_port(struct config_builder *b,
			       const struct config_word *w)
{
	static const struct config_range range = { "a port", 0, 65535 };
	struct config *c = b->config;
	unsigned int i;
	uint32_t port;

	if (!config_read_number(b, w, &range, &port))
		return;
	for (i = 0; i < c->nr_reflector_ports; i++) {
		if (c->reflector_ports[i] != port)
			continue;
		config_error(b, &w->at, "port %u is given twice", port);
		return;
	}
	if (c->nr_reflector_ports == NR_REFLECTOR_PORTS_MAX) {
		config_error(b, &w->at, "at most %zu reflector ports",
			     NR_REFLECTOR_PORTS_MAX);
		return;
	}
	c->reflector_ports[c->nr_reflector_ports++] = (uint16_t)port;
}
