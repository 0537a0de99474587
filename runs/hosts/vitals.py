"""What a host tells of itself with the heartbeat of its tick: no query of its own."""

from __future__ import annotations

from django.db.models.functions import Now

from runs.core.ports import Lab
from runs.models import Host


def to_store(lab: Lab, host: Host, runs: int) -> dict[str, object]:
    """The columns to store with the tick of `host`, which is as it was when the tick began."""
    now, warm = lab.machine.vitals(), list(lab.machine.warm())
    told: dict[str, object] = {
        "seen_at": Now(),
        "version": lab.machine.version,
        "load": now.load,
        "cores": now.cores,
        "disk_free_mb": now.disk_free_mb,
        "slots_used": runs,
    }
    socket = str(lab.paths.tmux_socket)
    changed = {"warm": (warm, host.warm), "tmux_socket": (socket, host.tmux_socket)}
    return told | {name: now for name, (now, before) in changed.items() if now != before}
