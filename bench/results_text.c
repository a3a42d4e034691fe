/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* For programs: JSON and CSV. */
#include "results.h"

#include "report_json.h"
#include "base/util.h"

#include <errno.h>

enum { HEAD_BYTES = 1024, CELL_BYTES = 256 };

static void put_cell(struct json *json, const struct cell *cell)
{
	json_open(json, '{');
	json_key(json, "store");
	json_string(json, designs[cell->design]->name);
	json_key_u64(json, "flows", cell->flows);
	json_key(json, "distribution");
	json_string(json, order_name(cell->order));
	json_key_u64(json, "cpus", cell->n_cpus);
	json_key(json, "sharing");
	json_string(json, sharing_name(cell->sharing));
	report_json_ns(json, "ns_per_packet", cell->ns.median);
	report_json_ns(json, "ns_over_empty", cell->over_empty);
	report_json_ns(json, "ns_min", cell->ns.min);
	report_json_ns(json, "ns_max", cell->ns.max);
	json_close(json, '}');
}

int results_print_json(const struct results *results, FILE *file)
{
	size_t size = HEAD_BYTES + (size_t)results->n_cells * CELL_BYTES;
	cleanup_free char *text = malloc(size);
	struct json json;

	if (!text)
		return -ENOMEM;
	report_json_begin(&json, text, size, &results->host, results->rounds);
	json_key(&json, "results");
	json_open(&json, '[');
	for (uint32_t i = 0; i < results->n_cells; i++)
		put_cell(&json, &results->cells[i]);
	json_close(&json, ']');
	return report_json_print(&json, file);
}

int results_print_csv(const struct results *results, FILE *file)
{
	fputs("store,flows,distribution,cpus,sharing,ns_per_packet,ns_over_empty,ns_min,ns_max\n",
	      file);
	for (uint32_t i = 0; i < results->n_cells; i++) {
		const struct cell *cell = &results->cells[i];

		fprintf(file, "%s,%u,%s,%u,%s,%.2f,%.2f,%.2f,%.2f\n",
			designs[cell->design]->name, cell->flows,
			order_name(cell->order), cell->n_cpus,
			sharing_name(cell->sharing), cell->ns.median,
			cell->over_empty, cell->ns.min, cell->ns.max);
	}
	return ferror(file) ? -EIO : 0;
}
