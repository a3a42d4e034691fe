/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The service map as a picture: clients on the left, services on the right. */
#include "services_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "service/file_replacement.h"
#include "service/text/human.h"
#include "cli/view/print.h"

enum {
	EDGES_DRAWN = 200, /* the others are named as a sum */
	WIDTH = 1000,
	MARGIN = 10,
	LEFT = 260,  /* column where lines begin */
	RIGHT = 640, /* and end */
	ROW = 24,
	TOP = 60,
	LABEL_MAX = 256,
};

/* A client or a service, in the order of its largest edge. */
struct place {
	char label[LABEL_MAX];
	uint64_t bytes;
};

struct column {
	struct place places[EDGES_DRAWN];
	uint32_t n;
};

struct picture {
	const struct services_view *view;
	FILE *file;
	struct column clients, services;
	uint32_t n_edges;
	uint64_t most_bytes; /* of the first edge */
	uint64_t drawn_bytes, all_bytes;
};

static uint32_t place_of(struct column *column, const char *label, uint64_t bytes)
{
	uint32_t i = 0;

	while (i < column->n && strcmp(column->places[i].label, label))
		i++;
	if (i == column->n) {
		snprintf(column->places[i].label,
			 sizeof(column->places[i].label), "%s", label);
		column->n++;
	}
	column->places[i].bytes += bytes;
	return i;
}

static void place_edges(struct picture *picture)
{
	const struct netobs_edge *edge;
	char label[LABEL_MAX];

	for (size_t i = 0;
	     (edge = netobs_services_row(picture->view->services, i)); i++) {
		const uint64_t bytes = edge_bytes(edge);

		if (edge->type == NETOBS_EDGE_TOTAL)
			picture->all_bytes = bytes;
		if (edge->type != NETOBS_EDGE || i >= EDGES_DRAWN)
			continue;
		services_client_label(label, sizeof(label), edge);
		place_of(&picture->clients, label, bytes);
		services_label(label, sizeof(label), edge);
		place_of(&picture->services, label, bytes);
		picture->n_edges++;
		picture->most_bytes = max_u64(picture->most_bytes, bytes);
		picture->drawn_bytes += bytes;
	}
}

static int y_of(uint32_t place)
{
	return TOP + (int)place * ROW;
}

/* 1 to 12: in proportion to the bytes of the largest edge. */
static double thickness(const struct picture *picture, uint64_t bytes)
{
	const uint64_t most = picture->most_bytes;

	return most ? 1 + 11.0 * (double)bytes / (double)most : 1;
}

static void draw_title(const struct picture *picture,
		       const struct netobs_edge *edge, const char *client,
		       const char *service)
{
	char bytes[32], rate[32], rtt[32];

	human_bytes(bytes, sizeof(bytes), edge_bytes(edge));
	human_rate(rate, sizeof(rate), edge_bytes(edge),
		   picture->view->duration_ms * NSEC_PER_MSEC);
	human_latency(rtt, sizeof(rtt), edge->rtt_ns);
	fputs("<title>", picture->file);
	xml_print(picture->file, client);
	fputs(" to ", picture->file);
	xml_print(picture->file, service);
	fprintf(picture->file,
		": %s, %s, RTT %s, %llu connections, %llu errors, "
		"%llu retransmissions</title>",
		bytes, rate, rtt, (unsigned long long)edge->connections,
		(unsigned long long)edge_errors(edge),
		(unsigned long long)edge->retransmits);
}

static void draw_edge(struct picture *picture, const struct netobs_edge *edge)
{
	const uint64_t bytes = edge_bytes(edge);
	const bool has_errors = edge_errors(edge);
	char client[LABEL_MAX], service[LABEL_MAX];
	int from, to;

	services_client_label(client, sizeof(client), edge);
	services_label(service, sizeof(service), edge);
	from = y_of(place_of(&picture->clients, client, 0)) - 4;
	to = y_of(place_of(&picture->services, service, 0)) - 4;
	fputs("<g>", picture->file);
	draw_title(picture, edge, client, service);
	fprintf(picture->file,
		"<path d=\"M%d %d C%d %d %d %d %d %d\" fill=\"none\" "
		"stroke=\"%s\" stroke-opacity=\"0.6\" stroke-width=\"%.1f\"/></g>\n",
		LEFT, from, (LEFT + RIGHT) / 2, from, (LEFT + RIGHT) / 2, to,
		RIGHT, to, has_errors ? "#c03020" : "#4080b0",
		thickness(picture, bytes));
}

static void draw_column(const struct picture *picture,
			const struct column *column, int x, const char *anchor)
{
	for (uint32_t i = 0; i < column->n; i++) {
		const struct place *place = &column->places[i];
		char bytes[32];

		human_bytes(bytes, sizeof(bytes), place->bytes);
		fprintf(picture->file,
			"<text x=\"%d\" y=\"%d\" text-anchor=\"%s\">", x,
			y_of(i), anchor);
		xml_print(picture->file, place->label);
		fprintf(picture->file, "  %s</text>\n", bytes);
	}
}

static void draw_head(const struct picture *picture)
{
	const uint64_t all = picture->all_bytes;
	const uint64_t left = all - picture->drawn_bytes;
	char total[32], others[32];

	human_bytes(total, sizeof(total), all);
	human_bytes(others, sizeof(others), left);
	fprintf(picture->file,
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
		"<text x=\"%d\" y=\"22\" font-size=\"14\">%s in all",
		MARGIN, total);
	if (left)
		fprintf(picture->file, ", of which %s are not drawn", others);
	fputs("</text>\n", picture->file);
	fprintf(picture->file,
		"<text x=\"%d\" y=\"42\" text-anchor=\"end\" font-weight=\"bold\">"
		"Clients</text>\n"
		"<text x=\"%d\" y=\"42\" font-weight=\"bold\">Services</text>\n",
		LEFT - MARGIN, RIGHT + MARGIN);
}

/* @return 0; -ENOMEM */
static int print_svg(FILE *file, const struct services_view *view)
{
	struct picture *picture = calloc(1, sizeof(*picture));
	uint32_t height;

	if (!picture)
		return -ENOMEM;
	picture->view = view;
	picture->file = file;
	place_edges(picture);
	height = TOP + ROW * (uint32_t)max_u64(picture->clients.n,
					       picture->services.n);
	fprintf(file,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%u\" viewBox=\"0 0 %d %u\" "
		"font-family=\"sans-serif\" font-size=\"12\">\n",
		WIDTH, height, WIDTH, height);
	draw_head(picture);
	for (uint32_t i = 0; i < picture->n_edges; i++)
		draw_edge(picture, netobs_services_row(view->services, i));
	draw_column(picture, &picture->clients, LEFT - MARGIN, "end");
	draw_column(picture, &picture->services, RIGHT + MARGIN, "start");
	fputs("</svg>\n", file);
	free(picture);
	return 0;
}

int services_write_svg(const char *path, const struct services_view *view)
{
	struct file_replacement replacement;
	int r = file_replacement_begin(&replacement, path);

	if (r)
		return r;
	r = print_svg(replacement.file, view);
	return file_replacement_end(&replacement, r);
}
