/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "selection.h"

#include "base/util.h"

#include <errno.h>
#include <string.h>

static const char netns_prefix[] = "netns:";

static void selected_done(struct selected *selected)
{
	patterns_done(&selected->include);
	free(selected->netns);
}

void selection_done(struct selection *selection)
{
	for (uint32_t i = 0; i < selection->count; i++)
		selected_done(&selection->items[i]);
	free(selection->items);
	patterns_done(&selection->exclude);
	*selection = (struct selection){ 0 };
}

static bool is_named(const struct selected *selected, const char *netns)
{
	return netns && selected->netns ? !strcmp(selected->netns, netns) :
					  !netns && !selected->netns;
}

struct selected *selection_find(const struct selection *selection,
				const char *netns)
{
	for (uint32_t i = 0; i < selection->count; i++)
		if (is_named(&selection->items[i], netns))
			return &selection->items[i];
	return NULL;
}

static bool match_any(const struct patterns *patterns, const char *name,
		      const char *altnames)
{
	bool matches = patterns_match(patterns, name);

	for (; !matches && altnames && *altnames; altnames += strlen(altnames) + 1)
		matches = patterns_match(patterns, altnames);
	return matches;
}

bool selection_has(const struct selection *selection,
		   const struct selected *selected, const char *interface,
		   const char *altnames)
{
	return (selected->is_all ||
		match_any(&selected->include, interface, altnames)) &&
	       !match_any(&selection->exclude, interface, altnames);
}

bool selected_names(const struct selected *selected, const struct netif *netif)
{
	for (uint32_t i = 0; i < selected->include.count; i++)
		if (!selected->include.items[i].is_regex &&
		    netif_is_called(netif, selected->include.items[i].text))
			return true;
	return false;
}

/* Find or add the item of a namespace. NULL: no memory. */
static struct selected *ensure_selected(struct selection *selection,
					const char *netns)
{
	struct selected *found = selection_find(selection, netns), *items;
	char *copy;

	if (found)
		return found;
	items = reallocarray(selection->items, selection->count + 1,
			     sizeof(*items));
	if (!items)
		return NULL;
	selection->items = items;
	if (copy_optional(netns, &copy))
		return NULL;
	items[selection->count] = (struct selected){ .netns = copy };
	return &items[selection->count++];
}

/*
 * @return where the interface begins in netns:NAME/INTERFACE. A path has slashes too, and so has a
 *         /regex/: "netns:/run/netns/a//^eth/" ends in one.
 */
static const char *split_netns(const char *spec)
{
	size_t len = strlen(spec);
	const char *slash = strrchr(spec, '/');

	if (!slash || slash != spec + len - 1)
		return slash;
	for (const char *p = slash - 1; p > spec; p--)
		if (p[0] == '/' && p[-1] == '/')
			return p - 1;
	return NULL;
}

static int add_interface(struct selection *selection, const char *spec,
			 const struct log *log)
{
	cleanup_free char *netns = NULL;
	const char *name = spec, *slash;
	struct selected *selected;

	if (!strncmp(spec, netns_prefix, strlen(netns_prefix))) {
		name = spec + strlen(netns_prefix);
		slash = split_netns(name);
		if (!slash || slash == name || !slash[1]) {
			log_error(log,
				  "interfaces: '%s': expected netns:NAME/INTERFACE",
				  spec);
			return -EINVAL;
		}
		netns = strndup(name, slash - name);
		if (!netns)
			return -ENOMEM;
		name = slash + 1;
	}
	selected = ensure_selected(selection, netns);
	if (!selected)
		return -ENOMEM;
	return patterns_add(&selected->include, name, "interfaces", log);
}

static int add_all(struct selection *selection)
{
	struct selected *own = ensure_selected(selection, NULL);

	if (!own)
		return -ENOMEM;
	own->is_all = true;
	return 0;
}

int selection_init(struct selection *selection, const char *const *interfaces,
		   const char *const *exclude, const struct log *log)
{
	int err = 0;

	*selection = (struct selection){ 0 };
	for (; !err && exclude && *exclude; exclude++)
		err = patterns_add(&selection->exclude, *exclude, "exclude", log);
	for (; !err && interfaces && *interfaces; interfaces++)
		err = add_interface(selection, *interfaces, log);
	if (!err && !selection->count)
		err = add_all(selection);
	if (err)
		selection_done(selection);
	return err;
}

static void remove_selected(struct selection *selection, uint32_t i)
{
	selected_done(&selection->items[i]);
	memmove(&selection->items[i], &selection->items[i + 1],
		(--selection->count - i) * sizeof(*selection->items));
}

int selection_rename(struct selection *selection, uint32_t i, const char *netns)
{
	struct selected *selected = &selection->items[i];
	struct selected *other = selection_find(selection, netns);
	char *copy;
	int err;

	if (other == selected)
		return 0;
	if (other) {
		err = patterns_move(&other->include, &selected->include);
		if (!err)
			remove_selected(selection, i);
		return err;
	}
	if (copy_optional(netns, &copy))
		return -ENOMEM;
	free(selected->netns);
	selected->netns = copy;
	return 0;
}

static bool has_interface(const struct netifs *netifs, const char *name)
{
	for (uint32_t i = 0; i < netifs->count; i++)
		if (!netifs->items[i].gone_ns &&
		    netif_is_called(&netifs->items[i], name))
			return true;
	return false;
}

int selected_check_names(const struct selected *selected,
			 const struct selected *before,
			 const struct netifs *netifs, const struct log *log)
{
	const char *netns = selected->netns;

	for (uint32_t i = 0; i < selected->include.count; i++) {
		const struct pattern *pattern = &selected->include.items[i];

		if (pattern->is_regex || has_interface(netifs, pattern->text) ||
		    (before && patterns_name(&before->include, pattern->text)))
			continue;
		log_error(log, "interfaces: %s%s%s%s: no such interface",
			  netns ? netns_prefix : "", netns ?: "",
			  netns ? "/" : "", pattern->text);
		return -ENODEV;
	}
	return 0;
}

/* ---- Patterns ------------------------------------------------------------------------ */

enum { ALTNAME_SIZE = 128 }; /* ALTIFNAMSIZ of linux/if.h */

static int compile_pattern(struct pattern *pattern, const char *option,
			   const struct log *log)
{
	char reason[128];
	int err = regcomp(&pattern->regex, pattern->text,
			  REG_EXTENDED | REG_NOSUB);

	if (!err)
		return 0;
	regerror(err, &pattern->regex, reason, sizeof(reason));
	log_error(log, "%s: regular expression /%s/: %s", option, pattern->text,
		  reason);
	return -EINVAL;
}

/* NUL-terminated copy without the slashes around it. */
static int parse_pattern(const char *text, struct pattern *pattern,
			 const char *option, const struct log *log)
{
	size_t len = strlen(text);

	pattern->is_regex = len >= 2 && text[0] == '/' && text[len - 1] == '/';
	if (!pattern->is_regex &&
	    (!len || len >= ALTNAME_SIZE || strchr(text, '/'))) {
		log_error(log,
			  "%s: '%s' is neither an interface name nor a /regex/",
			  option, text);
		return -EINVAL;
	}
	pattern->text = pattern->is_regex ? strndup(text + 1, len - 2) :
					    strdup(text);
	if (!pattern->text)
		return -ENOMEM;
	return pattern->is_regex ? compile_pattern(pattern, option, log) : 0;
}

int patterns_add(struct patterns *patterns, const char *text,
		 const char *option, const struct log *log)
{
	struct pattern pattern = { 0 }, *items;
	int err = parse_pattern(text, &pattern, option, log);

	if (err) {
		free(pattern.text);
		return err;
	}
	items = reallocarray(patterns->items, patterns->count + 1,
			     sizeof(*items));
	if (!items) {
		if (pattern.is_regex)
			regfree(&pattern.regex);
		free(pattern.text);
		return -ENOMEM;
	}
	items[patterns->count++] = pattern;
	patterns->items = items;
	return 0;
}

int patterns_move(struct patterns *to, struct patterns *from)
{
	uint32_t n = to->count + from->count;
	struct pattern *items;

	if (!from->count)
		return 0;
	items = reallocarray(to->items, n, sizeof(*items));
	if (!items)
		return -ENOMEM;
	memcpy(items + to->count, from->items, from->count * sizeof(*items));
	free(from->items);
	*from = (struct patterns){ 0 };
	*to = (struct patterns){ items, n };
	return 0;
}

void patterns_done(struct patterns *patterns)
{
	for (uint32_t i = 0; i < patterns->count; i++) {
		if (patterns->items[i].is_regex)
			regfree(&patterns->items[i].regex);
		free(patterns->items[i].text);
	}
	free(patterns->items);
	*patterns = (struct patterns){ 0 };
}

static bool matches_pattern(const struct pattern *pattern, const char *name)
{
	return pattern->is_regex ? !regexec(&pattern->regex, name, 0, NULL, 0) :
				   !strcmp(pattern->text, name);
}

bool patterns_match(const struct patterns *patterns, const char *name)
{
	for (uint32_t i = 0; i < patterns->count; i++)
		if (matches_pattern(&patterns->items[i], name))
			return true;
	return false;
}

bool patterns_name(const struct patterns *patterns, const char *name)
{
	for (uint32_t i = 0; i < patterns->count; i++)
		if (!patterns->items[i].is_regex &&
		    !strcmp(patterns->items[i].text, name))
			return true;
	return false;
}
