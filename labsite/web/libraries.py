"""What daphne is made of and opens nothing, so that it can be loaded before a process forks.

`daphne.server` is not among it: it makes an event loop as it is loaded.
"""

from __future__ import annotations

import os

from labsite.loading import without

# Native code for messages longer than ours, which brings the front end of a C compiler along.
os.environ.setdefault("AUTOBAHN_USE_NVX", "0")
# The proxy in front makes connections secure; nothing speaks the protocols that autobahn is made for.
with without("OpenSSL", "cbor2", "click"):
    import daphne.access
    import daphne.endpoints
    import daphne.http_protocol
    import daphne.ws_protocol  # noqa: F401
    import twisted.internet.asyncioreactor  # noqa: F401
