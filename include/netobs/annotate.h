/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file annotate.h
 * Adds to records of other programs, such as nfdump or Zeek, what records of netobs say of their
 * conversations: addresses before and after NAT, and processes. netobsctl map annotate uses it.
 *
 * An annotator is independent of contexts. One thread at a time may use it.
 */
#ifndef NETOBS_ANNOTATE_H
#define NETOBS_ANNOTATE_H

#include <stddef.h>

#include <netobs/version.h>

#ifdef __cplusplus
extern "C" {
#endif

struct netobs_annotator;

/** Enough for the members of any record, with its NUL. */
#define NETOBS_ANNOTATION_MAX 4096

/**
 * @param ret_annotator  the caller frees it by netobs_annotator_free()
 * @return 0; -EINVAL: @p ret_annotator is NULL; -ENOMEM
 */
NETOBS_API int netobs_annotator_new(struct netobs_annotator **ret_annotator);

/**
 * Add a flow, a mapping or a session in the JSON of netobs. Other types, and records without addresses
 * or times, change nothing.
 *
 * @param json  one object; NUL-terminated
 * @return 0; -EINVAL: it is no JSON object, or an argument is NULL; -ENOMEM
 */
NETOBS_API int netobs_annotator_add(struct netobs_annotator *annotator,
				    const char *json);

/**
 * Find the conversation of a record, of any program in netobsctl-map(8), ANNOTATE, and write the members to add.
 * Nothing is guessed: if records of netobs contradict each other, nothing is known.
 *
 * @param json         one object; NUL-terminated
 * @param ret_members  members that the record lacks, with a comma before each, for the place before its
 *                     last brace; NUL-terminated
 * @param size         of @p ret_members
 * @return length of the members without NUL; 0: nothing is known; -ENOTUNIQ: it may be of several
 *         conversations or processes; -EINVAL: it has no addresses in a known layout, or an argument is
 *         NULL; -ENOBUFS: @p size is too small
 */
NETOBS_API int netobs_annotator_find(const struct netobs_annotator *annotator,
				     const char *json, char *ret_members,
				     size_t size);

/** Free the annotator. NULL is fine. */
NETOBS_API void netobs_annotator_free(struct netobs_annotator *annotator);

#ifdef __cplusplus
}
#endif

#endif
