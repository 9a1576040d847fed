"""Colours, type and sizes of every figure, and how a model gets its colour and shape.

Areas are ledgers, lines and points are models, grey is neutral, dark red is an alarm: a ledger's
hue never colours a model or a control. Contrasts and colour-blind distances of these values are
computed in the tests, not asserted here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from ledgerkit.errors import FigureError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ledgerkit.spec.axes import Ledger

__all__ = [
    "FONT_STACK",
    "GROUPS",
    "PRESETS",
    "THEMES",
    "Preset",
    "Series",
    "Theme",
    "assign_series",
]

FONT_FAMILY: Final = "LedgerKit Sans SC"
FONT_STACK: Final = f"{FONT_FAMILY}, Noto Sans CJK SC, PingFang SC, Microsoft YaHei, sans-serif"
"""The shipped font first, so that exports are the same everywhere; then what screens have."""

TITLE: Final = 18.0
VERDICT: Final = 19.0
CORNER: Final = 15.0
LABEL: Final = 13.5
SUBTITLE: Final = 13.0
SMALL: Final = 12.0
"""Type sizes in px of a figure at its own width; nothing is set smaller than SMALL."""

MARGIN: Final = 20.0
TITLE_Y: Final = 24.0
SUBTITLE_Y: Final = 49.0
SUBTITLE_PITCH: Final = 19.0
FOOT_PITCH: Final = 17.0
LABEL_PITCH: Final = 17.0
BOTTOM: Final = 14.0

GROUPS: Final[Mapping[Ledger, Mapping[str, tuple[str, ...]]]] = {
    "attention_kv": {
        "core": ("core",),
        "cache": ("cache",),
        "projections": ("projections",),
        "indexer": ("indexer",),
        "state": ("state",),
        "other": ("norms",),
    },
    "ffn_mlp": {
        "routed_experts": ("routed_experts",),
        "shared_experts": ("shared_experts",),
        "dense": ("dense",),
        "vocab": ("vocab",),
        "router": ("router",),
        "offload": ("offload",),
        "other": ("per_layer_embedding", "residual", "norms"),
    },
    "scheduling": {
        "communication": ("tp", "ep", "pp"),
        "launch": ("launch",),
        "padding": ("padding", "fragmentation"),
        "host": ("host", "queue"),
        "draft": ("draft", "recompute"),
        "other": (),
    },
}
"""What bars draw as one segment, in drawing order: accounts by ledger and group."""


@dataclass(frozen=True)
class Theme:
    """The colour tokens of one look.

    Parameters
    ----------
    name : str
        Name by which charts and :func:`ledgerkit.save_figure` take it.
    background, ink, mute, rule, grid, free, alert : str
        Neutral and special colours, ``#RRGGBB``.
    fill, text, wash, gridline : mapping
        One colour per ledger: areas, words, regions and grid lines.
    tints : mapping
        Per ledger one colour per group of :data:`GROUPS`.
    series : tuple of str
        Six model colours, legible as text.
    stroke : float
        Factor on line widths.

    Examples
    --------
    >>> THEMES["article"].fill["ffn_mlp"]
    '#DB7C1E'
    """

    name: str
    background: str
    ink: str
    mute: str
    rule: str
    grid: str
    free: str
    alert: str
    fill: Mapping[str, str]
    text: Mapping[str, str]
    wash: Mapping[str, str]
    gridline: Mapping[str, str]
    tints: Mapping[str, Mapping[str, str]]
    series: tuple[str, ...]
    stroke: float = 1.0
    faded: float = field(default=0.45)


def _by_ledger(attention: str, ffn: str, scheduling: str) -> dict[str, str]:
    return {"attention_kv": attention, "ffn_mlp": ffn, "scheduling": scheduling}


def _tints(*ramps: str) -> dict[str, dict[str, str]]:
    return {
        ledger: dict(zip(groups, ramp.split(), strict=True))
        for (ledger, groups), ramp in zip(GROUPS.items(), ramps, strict=True)
    }


_ARTICLE: Final = Theme(
    name="article",
    background="#FFFFFF",
    ink="#1B1F27",
    mute="#555C69",
    rule="#8A919E",
    grid="#E2E5EA",
    free="#ECEEF2",
    alert="#A3191F",
    fill=_by_ledger("#163F85", "#DB7C1E", "#2E817D"),
    text=_by_ledger("#163F85", "#9A5207", "#1D6B67"),
    wash=_by_ledger("#EEF2FA", "#FDF3E8", "#EAF5F4"),
    gridline=_by_ledger("#C3CFE6", "#F1D2B0", "#BFDAD8"),
    tints=_tints(
        "#163F85 #305C9C #4A76B8 #6893D4 #86ADE5 #A6C3EC",
        "#DB7C1E #E2A972 #F2BF91 #FED1A8 #FFDFBB #B56D13 #F6E6D2",
        "#2E817D #6DACA7 #8AC0BC #A7D5D1 #C0E7E4 #D9EFED",
    ),
    series=("#7347DB", "#53730A", "#B0456F", "#23272F", "#4A0A63", "#1F4A12"),
)

THEMES: Final[Mapping[str, Theme]] = {
    "article": _ARTICLE,
    "slide": replace(
        _ARTICLE, name="slide", mute="#3A404B", rule="#6B7280", grid="#C9CED6", stroke=1.3
    ),
    "dark": Theme(
        name="dark",
        background="#14181F",
        ink="#EEF1F6",
        mute="#AEB6C4",
        rule="#7C8594",
        grid="#2C333F",
        free="#262D38",
        alert="#FF8B87",
        fill=_by_ledger("#79B2F7", "#F7B25A", "#3E8878"),
        text=_by_ledger("#86BBF8", "#F7B25A", "#79C2BB"),
        wash=_by_ledger("#19243A", "#2A2218", "#172926"),
        gridline=_by_ledger("#31486E", "#5B4426", "#2B504C"),
        tints=_tints(
            "#79B2F7 #649FE2 #4E8CCE #417DBA #346DA6 #9BC3FC",
            "#F7B25A #E1A14F #CD9245 #BA833C #A77533 #94662A #FDC88B",
            "#3E8878 #68AD9D #7EC0B0 #98D2C3 #AFE2D4 #C9EDE4",
        ),
        series=("#9A7CE0", "#C8F25E", "#BE788C", "#EEF1F6", "#F0B4FA", "#6B9A2A"),
    ),
}
"""``article`` (white, print), ``slide`` (projector: darker greys, heavier lines) and ``dark``."""


@dataclass(frozen=True)
class Preset:
    """A figure width; type sizes stay the same.

    Parameters
    ----------
    name : str
        ``"article"``, ``"phone"`` or ``"panel"``.
    width : int
        px.

    Examples
    --------
    >>> PRESETS["phone"].width
    420
    """

    name: str
    width: int


PRESETS: Final[Mapping[str, Preset]] = {
    "article": Preset("article", 700),
    "panel": Preset("panel", 588),
    "phone": Preset("phone", 420),
}

SHAPES: Final = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")
DASHES: Final = ((), (7, 3), (2, 2), (8, 3, 2, 3), (4, 4), (1, 3))
FAMILIES: Final = ("deepseek", "gemma", "kimi", "mimo")
"""Families with a colour of their own; any other model takes the next free one."""


@dataclass(frozen=True)
class Series:
    """How one model is drawn.

    Parameters
    ----------
    label : str
        Name at the mark.
    color, shape : str
        Colour and symbol.
    dash : tuple of int
        Second cue for lines in charts without symbols.

    Examples
    --------
    >>> Series("DeepSeek-V3", "#7347DB", "circle", ()).shape
    'circle'
    """

    label: str
    color: str
    shape: str
    dash: tuple[int, ...]


def assign_series(models: Sequence[tuple[str, str]], theme: Theme) -> dict[str, Series]:
    """Give each model its colour and shape: by family first, then by order of appearance.

    Parameters
    ----------
    models : sequence of (label, model)
        Distinct labels; the model's slug or name tells the family.
    theme : Theme
        Where the colours come from.

    Returns
    -------
    dict
        Label to :class:`Series`. From the seventh on they are grey.

    Examples
    --------
    >>> pairs = [("Kimi-K2.6", "kimi-k2.6"), ("Llama 3.1 8B", "llama-3.1-8b")]
    >>> {label: s.shape for label, s in assign_series(pairs, THEMES["article"]).items()}
    {'Kimi-K2.6': 'diamond', 'Llama 3.1 8B': 'triangle-down'}
    """
    slots: dict[str, int] = {}
    for label, model in models:
        for slot, family in enumerate(FAMILIES):
            if family in model.lower() and slot not in slots.values():
                slots[label] = slot
    # the two colours without a family go first, so that families keep theirs
    free = [slot for slot in (4, 5, 0, 1, 2, 3) if slot not in slots.values()]
    for label, _ in models:
        if label not in slots:
            slots[label] = free.pop(0) if free else len(theme.series)
    return {
        label: Series(label, theme.series[slot], SHAPES[slot], DASHES[slot])
        if (slot := slots[label]) < len(theme.series)
        else Series(label, theme.mute, "circle", ())
        for label, _ in models
    }


def resolve_theme(theme: str | Theme | None) -> Theme:
    """Return a theme by name.

    Parameters
    ----------
    theme : str, Theme or None
        None is ``"article"``.

    Returns
    -------
    Theme

    Raises
    ------
    FigureError
        For an unknown name.

    Examples
    --------
    >>> resolve_theme("dark").background
    '#14181F'
    """
    if isinstance(theme, Theme):
        return theme
    name = "article" if theme is None else theme
    if name not in tuple(THEMES):
        raise FigureError("unknown theme", given=theme, allowed=", ".join(THEMES),
                          fix="use theme='article'")  # fmt: skip
    return THEMES[name]


def resolve_preset(preset: str | None, allowed: Sequence[str]) -> Preset:
    """Return a preset by name.

    Parameters
    ----------
    preset : str or None
        None is the first allowed one.
    allowed : sequence of str
        The presets that the chart has.

    Returns
    -------
    Preset

    Raises
    ------
    FigureError
        For a preset that the chart does not have.

    Examples
    --------
    >>> resolve_preset(None, ("article", "phone")).width
    700
    """
    name = allowed[0] if preset is None else preset
    if name not in tuple(allowed):
        raise FigureError("this chart has no such preset", given=preset, allowed=", ".join(allowed),
                          fix="leave preset out")  # fmt: skip
    return PRESETS[name]
