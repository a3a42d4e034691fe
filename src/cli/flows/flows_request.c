/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "flows_request.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netobs/netobs.h>

#include "base/text.h"
#include "service/text/human.h"

enum { DEFAULT_INTERVAL_MS = 5000 }; /* the library's */

/* With --live, the service chooses the observed packets; for a file, -i selects interfaces. */
static int check_source(const struct flows_request *request)
{
	const struct args_option *option = args_find_given(
		request->command, request->given,
		request->live ? ARGS_SOURCE_PACKETS : ARGS_SOURCE_INTERFACES);
	const char *other = request->files.n	    ? "-r" :
			    request->filter_words.n ? "FILTER" :
			    request->stats	    ? "--stats" :
						      NULL;

	if (!(request->live && (option || other)) && !(request->files.n && option))
		return 0;
	args_complain(request->command, "%s: cannot be combined with %s",
		      option ? args_label(option->letter, option->name).text :
			       other,
		      request->live ? "--live: the service has a configuration" :
				      "-r, which observes no interface");
	return -1;
}

static int check_combinations(const struct flows_request *request)
{
	size_t n_stdin = 0;

	for (size_t i = 0; i < request->files.n; i++)
		n_stdin += !strcmp(request->files.items[i], "-");
	if (n_stdin > 1)
		args_complain(request->command,
			      "-r: standard input can be read only once");
	else if (request->socket && !request->live)
		args_complain_alone(request->command, "--socket", "--live");
	else if (request->config.opts.max_connections && !request->config.rtt &&
		 !request->live)
		args_complain_alone(request->command, "--max-connections",
				    "--rtt");
	else if (request->config.opts.container_root &&
		 !request->config.container_names && !request->live)
		args_complain_alone(request->command, "--container-root",
				    "--container-names");
	else if (request->files.n && request->duration_ms)
		args_complain(
			request->command,
			"-d: cannot be combined with -r, which observes no interface");
	else
		return check_source(request);
	return -1;
}

static int check_live_output(const struct flows_request *request)
{
	const struct output *output = request->outputs.list;

	if (!request->live || (request->outputs.n == 1 &&
			       (output->kind || !strcmp(output->spec, "json"))))
		return 0;
	args_complain(request->command,
		      "-o: with --live it is one of table and json");
	return -1;
}

enum args_result flows_check_names(const struct args_command *command,
				   const struct args_list *names,
				   const char *option)
{
	char why[160];

	for (size_t i = 0; i < names->n; i++) {
		if (flows_check_interface(names->items[i], why, sizeof(why)))
			continue;
		args_complain(command, "%s '%s': %s", option, names->items[i],
			      why);
		return ARGS_WRONG;
	}
	return ARGS_RUN;
}

static enum args_result take_rule(const struct args_command *command,
				  const char *spec, bool has_drops,
				  struct alert_rules *rules)
{
	const char *rule = "";
	char why[640];
	int r = alert_rules_add(rules, NULL, spec);

	if (r == -E2BIG) {
		args_complain(command, "--rule: there are more than 128");
		return ARGS_WRONG;
	}
	if (r == 0) {
		rule = rules->list[rules->n - 1].rule;
		r = netobs_alert_rule_check(rule, why, sizeof(why));
	}
	if (r == -ENOMEM)
		args_out_of_memory(command);
	if (r == 0 && !has_drops && alert_rule_needs_drops(rule)) {
		snprintf(why, sizeof(why), "it needs --drops");
		r = -EINVAL;
	}
	if (r == 0)
		return ARGS_RUN;
	args_complain(command, "--rule '%s': %s", rule, why);
	return ARGS_WRONG;
}

enum args_result flows_take_rules(const struct args_command *command,
				  const struct args_list *specs, bool has_drops,
				  struct alert_rules *rules)
{
	enum args_result result = ARGS_RUN;

	for (size_t i = 0; result == ARGS_RUN && i < specs->n; i++)
		result = take_rule(command, specs->items[i], has_drops, rules);
	return result;
}

static int parse_outputs(struct flows_request *request)
{
	struct output_list *outputs = &request->outputs;

	if (output_list_parse(outputs, request->command, &request->output_specs,
			      request->has_screen) != ARGS_RUN)
		return -1;
	for (size_t i = 0; i < outputs->n; i++) {
		struct output *output = &outputs->list[i];

		if (request->is_tcp)
			output->kind = output_is_screen(output) ?
					       &output_tcp :
					       &output_tcp_lines;
		else if (output_is_screen(output) && request->is_top)
			output->kind = &output_top;
	}
	if (request->is_alerts)
		output_list_take(outputs, "alert", &output_alerts);
	return 0;
}

static int refuse_view(const struct flows_request *request, const char *option,
		       const char *value, const char *why)
{
	args_complain(request->command, "%s%s%s%s: %s", option,
		      value ? " '" : "", value ?: "", value ? "'" : "", why);
	return -1;
}

/* @return the output that shows rows; NULL: none */
static struct output *find_viewer(const struct flows_request *request)
{
	for (size_t i = 0; i < request->outputs.n; i++)
		if (output_is_for_people(&request->outputs.list[i]) ||
		    request->outputs.list[i].kind == &output_groups)
			return &request->outputs.list[i];
	return NULL;
}

static int group_outputs(struct flows_request *request)
{
	for (size_t i = 0; i < request->outputs.n; i++) {
		if (output_take_groups(&request->outputs.list[i]))
			continue;
		args_complain(request->command,
			      "-o '%s': it takes flows only; groups (--by) go to "
			      "standard output, as table or json",
			      request->outputs.list[i].spec);
		return -1;
	}
	return 0;
}

const char *flows_default_by(const struct flows_request *request)
{
	return request->config.process || request->config.container_names ?
		       "process,client,service" :
		       "client,service";
}

/*
 * On a host with many connections, the rows of a screen would differ in the client's port only;
 * rows by client and service fit.
 */
static int parse_by(struct flows_request *request)
{
	const struct output *viewer = find_viewer(request);
	char why[192];

	if (request->by &&
	    by_parse(request->by, &request->view.by, why, sizeof(why)))
		return refuse_view(request, "--by", request->by, why);
	if (request->view.by.keys.flags & NETOBS_GROUP_PROCESS && request->files.n)
		return refuse_view(
			request, "--by", request->by,
			"a file does not have the processes of its packets");
	request->config.process |= request->view.by.keys.flags &
					   NETOBS_GROUP_PROCESS &&
				   !request->live;
	if (request->view.by.keys.n)
		return group_outputs(request);
	if (!request->by && viewer && output_is_screen(viewer))
		by_parse(flows_default_by(request), &request->view.by, why,
			 sizeof(why));
	return 0;
}

/* Set the view of connections, which have columns of their own. */
static int parse_tcp_view(struct flows_request *request)
{
	request->view.by.shows_process = request->config.process;
	request->outputs.list->view = &request->view;
	return 0;
}

static int parse_view(struct flows_request *request)
{
	struct view_options *view = &request->view;
	struct output *viewer;
	bool is_lines;
	char why[192];

	request->config.process |= request->config.container_names;
	if (request->is_tcp)
		return parse_tcp_view(request);
	if (request->is_alerts)
		return 0;
	if (parse_by(request) < 0)
		return -1;
	viewer = find_viewer(request);
	if (!viewer && (request->sort || request->view.top))
		return refuse_view(request, request->sort ? "--sort" : "--top",
				   NULL,
				   "records are sent as they come; for rows in an "
				   "order, use -o table or --by");
	if (request->view.want_names && (!viewer || !output_is_for_people(viewer)))
		return refuse_view(request, "-N", NULL,
				   "only a table has names: use -o table");
	if (!viewer)
		return 0;
	viewer->view = view;
	view->by.shows_process = request->config.process;
	view->by.shows_nat = request->config.nat;
	view->by.shows_rtt = request->config.rtt;
	view->by.shows_drops = request->config.drops;
	is_lines = !output_is_screen(viewer);
	view->order.sort = view->by.keys.n || !is_lines ? NETOBS_GROUP_BY_BYTES :
							  NETOBS_GROUP_BY_TIME;
	if (request->sort && view_parse_sort(request->sort, &view->by, is_lines,
					     &view->order, why, sizeof(why)))
		return refuse_view(request, "--sort", request->sort, why);
	return 0;
}

static void add_names(struct flows_request *request, const char *before,
		      const struct args_list *names)
{
	for (size_t i = 0; i < names->n; i++)
		text_append(request->subject, sizeof(request->subject), "%s%s",
			    i ? ", " : before, names->items[i]);
}

static void describe_request(struct flows_request *request)
{
	const struct flows_config *config = &request->config;
	const size_t size = sizeof(request->subject);
	char *text = request->subject;

	/* First, so that few screens are too narrow for it. */
	if (config->opts.sampling)
		snprintf(text, size, "1 of %u %s of ", config->opts.sampling,
			 human_sampled(config->opts.sampling_mode));
	add_names(request, "", &request->files);
	if (!request->files.n && !config->interfaces.n)
		text_append(text, size, "all interfaces");
	add_names(request, "", &config->interfaces);
	add_names(request, " but not ", &config->exclude);
	if (config->opts.direction > 0)
		text_append(text, size, " (%s)",
			    ARGS_WORDS(CHOICES_directions(
				    OPTION_COMMA))[config->opts.direction]);
	if (config->filter)
		text_append(text, size, ": %s", config->filter);
	if (config->rules_path)
		text_append(text, size, ": rules of %s", config->rules_path);
	safe_cell(text);
}

int flows_join_filter(const struct args_command *for_command,
		      const struct args_list *words, char **ret_filter)
{
	size_t size = 1;
	char *end;

	if (!words->n)
		return 0;
	if (words->n == 1 && if_nametoindex(words->items[0])) {
		args_complain(for_command,
			      "'%s': to observe this interface: -i %s",
			      words->items[0], words->items[0]);
		return -1;
	}
	for (size_t i = 0; i < words->n; i++)
		size += strlen(words->items[i]) + 1;
	end = malloc(size);
	if (!end)
		args_out_of_memory(for_command);
	*ret_filter = end;
	for (size_t i = 0; i < words->n; i++)
		end += sprintf(end, "%s%s", i ? " " : "", words->items[i]);
	return 0;
}

static int read_rules(struct flows_request *request)
{
	char why[512];

	if (!request->config.rules_path)
		return 0;
	if (request->config.filter)
		snprintf(why, sizeof(why),
			 "it cannot be combined with an expression, which can be a rule: '%.200s'",
			 request->config.filter);
	else if (rules_read(request->config.rules_path, true,
			    &request->config.rules, why, sizeof(why)))
		return 0;
	args_complain(request->command, "--rules: %s", why);
	return -1;
}

static int check_values(struct flows_request *request)
{
	char why[320];

	if (!flows_check_interval(request->config.opts.interval_ms, why,
				  sizeof(why)))
		args_complain(request->command, "--interval: %s", why);
	else if (!flows_parse_sampling(&request->config, why, sizeof(why)))
		args_complain(request->command, "--sampling: %s", why);
	else if (!metrics_check(&request->config.metrics, why, sizeof(why)))
		args_complain(request->command, "--metrics: %s", why);
	else
		return 0;
	return -1;
}

enum args_result flows_request_finish(struct flows_request *request)
{
	if (check_combinations(request) < 0 || check_values(request) < 0 ||
	    flows_check_names(request->command, &request->config.interfaces,
			      "-i") != ARGS_RUN ||
	    flows_check_names(request->command, &request->config.exclude,
			      "-x") != ARGS_RUN ||
	    flows_join_filter(request->command, &request->filter_words,
			      &request->config.filter) < 0 ||
	    read_rules(request) < 0 || parse_outputs(request) < 0 ||
	    check_live_output(request) < 0 || parse_view(request) < 0)
		return ARGS_WRONG;

	describe_request(request);
	request->view.subject = request->subject;
	request->view.is_file = request->files.n;
	request->view.interval_ms = request->config.opts.interval_ms ?:
					    DEFAULT_INTERVAL_MS;
	for (size_t i = 0; i < request->outputs.n; i++) {
		request->outputs.list[i].sampling = request->config.opts.sampling;
		request->outputs.list[i].sampling_mode =
			request->config.opts.sampling_mode;
	}
	return ARGS_RUN;
}

void flows_request_clear(struct flows_request *request)
{
	flows_config_clear(&request->config);
	args_list_clear(&request->files);
	args_list_clear(&request->output_specs);
	args_list_clear(&request->filter_words);
	args_list_clear(&request->alert_specs);
	output_list_free(&request->outputs);
}
