"""The Slack bot. This file compiles on any Python 3: before anything newer is read, it says if Python is too old."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 (pip refuses, but a clone can be started without it)
    sys.exit("harness-bot needs Python 3.11 or newer; this is %d.%d." % sys.version_info[:2])  # noqa: UP031
