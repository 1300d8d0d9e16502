// SPDX-License-Identifier: GPL-2.0-or-later
#include "hostname.h"

#include <ctype.h>
#include <string.h>

#include "report.h"

/* RFC 1035, 2.3.4, without the root's label */
#define NAME_MAX_LEN 253
#define LABEL_MAX_LEN 63
#define BACKEND_NAME_MAX 64

/* '_' is no host name's, but such names are served. */
static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_';
}

/* The final label of a name is never a number: that is an IPv4 address. */
static bool ends_in_number(const char *name)
{
	const char *dot = strrchr(name, '.');
	const char *label = dot ? dot + 1 : name;

	return *label && strspn(label, "0123456789") == strlen(label);
}

static bool check_bytes(struct config_builder *b, const struct config_word *w,
			const char *name)
{
	const char *odd = name;

	while (is_name_char(*odd) || *odd == '.')
		odd++;
	if (!*odd)
		return true;
	if (strstr(name, "://") || *odd == '/')
		config_error(b, &w->at,
			     "%s is not a host name; write the host alone, "
			     "without scheme and path",
			     config_quote(b, w->text));
	else if (*odd == ':')
		config_error(b, &w->at,
			     "%s is not a host name; a port does not belong "
			     "here",
			     config_quote(b, w->text));
	else if (*odd == '*')
		config_error(b, &w->at,
			     "in %s, '*' is not the whole first label; write "
			     "'*.example.org', or '*' alone",
			     config_quote(b, w->text));
	else if ((unsigned char)*odd >= 0x80)
		config_error(b, &w->at,
			     "%s is not ASCII; write the name as it is in DNS "
			     "('xn--...')",
			     config_quote(b, w->text));
	else
		config_error(b, &w->at, "a host name cannot contain %s: %s",
			     config_quote_bytes(b, odd, 1),
			     config_quote(b, w->text));
	return false;
}

static bool check_labels(struct config_builder *b, const struct config_word *w,
			 const char *name)
{
	size_t len;

	if (!*name) {
		config_error(b, &w->at, "the host name %s is empty",
			     config_quote(b, w->text));
		return false;
	}
	do {
		len = strcspn(name, ".");
		if (!len || len > LABEL_MAX_LEN)
			break;
		name += len;
	} while (*name++);
	if (!len && *w->text == '.')
		config_error(b, &w->at,
			     "%s begins with a dot; for the names below write "
			     "'*.example.org'",
			     config_quote(b, w->text));
	else if (!len)
		config_error(b, &w->at,
			     "the host name %s has an empty label (a dot too "
			     "many)",
			     config_quote(b, w->text));
	else if (len > LABEL_MAX_LEN)
		config_error(b, &w->at,
			     "the label %s is %zu bytes long; at most %d are "
			     "allowed",
			     config_quote_bytes(b, name, len), len,
			     LABEL_MAX_LEN);
	return len && len <= LABEL_MAX_LEN;
}

static bool is_address(const char *name)
{
	struct address ignored;

	return address_parse_host(name, &ignored) || ends_in_number(name);
}

static char *normalise(struct config_builder *b, const struct config_word *w)
{
	char *name = config_keep(b, w->text);
	size_t i, len;

	if (!name)
		return NULL;
	len = strlen(name);
	if (len > 1 && name[len - 1] == '.' && name[len - 2] != '*')
		name[--len] = '\0';
	for (i = 0; i < len; i++)
		name[i] = (char)tolower((unsigned char)name[i]);
	if (len <= NAME_MAX_LEN)
		return name;
	config_error(b, &w->at,
		     "the host name %s is %zu bytes long; at most %d are "
		     "allowed",
		     config_quote(b, w->text), len, NAME_MAX_LEN);
	return NULL;
}

char *config_read_hostname(struct config_builder *b,
			   const struct config_word *w)
{
	char *name = normalise(b, w);

	if (!name)
		return NULL;
	/* whole addresses do not come here */
	if (ends_in_number(name)) {
		config_error(b, &w->at, "%s is not an address",
			     config_quote(b, w->text));
		return NULL;
	}
	return check_bytes(b, w, name) && check_labels(b, w, name) ? name
								   : NULL;
}

char *config_read_pattern(struct config_builder *b, const struct config_word *w)
{
	char *pattern;
	const char *name;

	if (!*w->text) {
		config_error(b, &w->at,
			     "a host name cannot be empty; '*' is any name, or "
			     "none");
		return NULL;
	}
	pattern = normalise(b, w);
	if (!pattern || !strcmp(pattern, "*"))
		return pattern;
	name = strncmp(pattern, "*.", 2) ? pattern : pattern + 2;
	if (is_address(name)) {
		config_error(b, &w->at,
			     "%s is an address; clients ask for names, never "
			     "for addresses",
			     config_quote(b, w->text));
		return NULL;
	}
	return check_bytes(b, w, name) && check_labels(b, w, name) ? pattern
								   : NULL;
}

bool config_check_name(struct config_builder *b, const struct config_word *w,
		       const char *what)
{
	size_t i, len = strlen(w->text);

	if (!len || len > BACKEND_NAME_MAX) {
		config_error(b, &w->at,
			     "the name of a %s has 1 to %d characters, this "
			     "one has %zu",
			     what, BACKEND_NAME_MAX, len);
		return false;
	}
	for (i = 0; i < len; i++) {
		if (is_name_char(w->text[i]) || w->text[i] == '.')
			continue;
		config_error(b, &w->at,
			     "the name of a %s cannot contain %s: %s", what,
			     config_quote_bytes(b, &w->text[i], 1),
			     config_quote(b, w->text));
		return false;
	}
	return true;
}
