"""The presets of monitors as the requirements have them, written down a second time."""

from __future__ import annotations

from runs.groups.terms import PresetName

TABLE = {
    # label, poll, stale, timeout, release, checkpoints, unique (RUNE-51 to RUNE-57)
    PresetName.REVIEW: ("Review", 30, 300, 600, None, False, True),
    PresetName.AUDIT: ("Audit", 30, 300, 900, None, False, True),
    PresetName.WORK: ("Work", 30, 300, 1800, 600, True, False),
    PresetName.MEND: ("Mend", 30, 300, 900, 600, False, False),
    PresetName.PLAN: ("Plan Research", 30, 300, None, None, False, False),
    PresetName.FORGE: ("Forge", 30, 300, None, 300, False, False),
    PresetName.ARC: ("Arc: {phase}", 30, 300, None, None, False, False),
}
