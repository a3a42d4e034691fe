# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
"""Runs `netobsctl config` on the configuration of a test."""


from lib import observer


class Configured:
    """A test with a configuration in self.path."""

    def config(self, *arguments):
        done = observer.run("config", *arguments, code=None)
        return done.returncode, done.stdout, done.stderr

    def check_errors(self, cases):
        """Of each text, with a sink behind it, and the place and beginning of its error."""
        for text, error in cases:
            with self.subTest(error), open(self.path, "w", encoding="utf-8") as file:
                file.write(text + '\n[sink "n"]\noutput = null\n')
                file.flush()
                code, _, errors = self.config("check", self.path)
                self.assertEqual(1, code)
                self.assertIn(f"{self.path}:{error}", errors)
