// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "faults.h"

/* FNV-1a. */
static uint64_t hash(const char *text)
{
	uint64_t sum = 0xcbf29ce484222325;

	for (; *text; text++)
		sum = (sum ^ (unsigned char)*text) * 0x100000001b3;
	return sum;
}

bool faults_begin(struct faults *faults, const char *text)
{
	uint64_t sum = hash(text);

	for (unsigned int i = 0; i < faults->n && i < FAULTS_MAX; i++)
		if (faults->told[i] == sum)
			return false;
	faults->told[faults->n++ % FAULTS_MAX] = sum;
	return true;
}

bool faults_end(struct faults *faults)
{
	bool were_told = faults->n;

	faults->n = 0;
	return were_told;
}
