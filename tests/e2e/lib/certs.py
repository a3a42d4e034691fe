# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# Needs: openssl
"""Certificates for a test, made by the openssl command."""

import os

from lib import lab

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Certificates:
    """An authority; paths of what it signs: path("NAME.pem"), path("NAME.key")."""

    def __init__(self, directory):
        self.directory = directory
        os.makedirs(directory, exist_ok=True)
        lab.run("openssl", "req", "-x509", *KEY, "-days", "2", "-subj",
                "/CN=netobs test authority", "-keyout", self.path("ca.key"),
                "-out", self.path("ca.pem"))

    def path(self, name):
        return os.path.join(self.directory, name)

    def sign(self, name, *names, days=2):
        """A certificate @name, for @names as "DNS:HOST" or "IP:ADDRESS"."""
        lab.write(self.path(f"{name}.ext"), f"subjectAltName={','.join(names)}\n")
        lab.run("openssl", "req", *KEY, "-subj", f"/CN={name}", "-keyout",
                self.path(f"{name}.key"), "-out", self.path(f"{name}.csr"))
        lab.run("openssl", "x509", "-req", "-in", self.path(f"{name}.csr"),
                "-CA", self.path("ca.pem"), "-CAkey", self.path("ca.key"),
                "-CAcreateserial", "-days", days, "-extfile",
                self.path(f"{name}.ext"), "-out", self.path(f"{name}.pem"))
