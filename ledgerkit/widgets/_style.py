"""Style of the panels: the colours of the figures, columns by the room there is, visible focus."""

from __future__ import annotations

from ledgerkit.charts.theme import FONT_STACK, THEMES

_SHEET = """
.ledgerkit { container-type: inline-size; width: 100%; overflow: hidden; border-radius: 4px;
  font-family: %(font)s; }
.ledgerkit .widget-box { overflow: visible; min-width: 0; }
.ledgerkit .ledgerkit-panel { padding: 14px 16px; overflow: hidden; }
.ledgerkit .ledgerkit-head { align-items: center; gap: 8px 12px; padding-bottom: 10px;
  justify-content: space-between; flex-flow: row wrap; border-bottom: 1px solid var(--lk-grid); }
.ledgerkit .ledgerkit-tools { align-items: center; gap: 8px 12px; flex-flow: row wrap; }
.ledgerkit h3 { margin: 0; font-size: 18px; color: var(--lk-ink); }
.ledgerkit h4 { margin: 10px 0 2px; font-size: 13px; color: var(--lk-ink); }
.ledgerkit .ledgerkit-body { display: grid !important; gap: 14px 28px; align-items: start;
  grid-template-columns: minmax(0, 1fr); margin-top: 12px; overflow: visible; }
.ledgerkit .ledgerkit-side { gap: 2px; overflow: visible; }
.ledgerkit .ledgerkit-stage, .ledgerkit .ledgerkit-detail { overflow-x: auto; min-width: 0; }
.ledgerkit .ledgerkit-detail { padding: 6px; margin: -6px; }
@container (min-width: 880px) {
  .ledgerkit .ledgerkit-body { grid-template-columns: 264px minmax(0, 1fr);
    grid-template-rows: auto 1fr; }
  .ledgerkit .ledgerkit-side { grid-row: 1 / span 2; }
  .ledgerkit .ledgerkit-detail { grid-column: 2; display: grid !important; gap: 4px 32px;
    grid-template-columns: repeat(2, minmax(0, 1fr)); align-items: start; padding-left: 24px; }
}
.ledgerkit .ledgerkit-detail.ledgerkit-wide { display: flex !important; }
.ledgerkit th[scope="row"] { min-width: 11em; }
@container (min-width: 1240px) {
  .ledgerkit .ledgerkit-body { grid-template-columns: 252px auto minmax(300px, 1fr);
    column-gap: 22px; }
  .ledgerkit th[scope="row"] { min-width: 6em; }
  .ledgerkit .ledgerkit-side { grid-row: 1; }
  .ledgerkit .ledgerkit-detail { grid-column: 3; display: flex !important; padding-left: 6px; }
}
.ledgerkit .ledgerkit-figure { transition: opacity 0.1s; }
.ledgerkit .lm-Widget, .ledgerkit .widget-html-content { color: var(--lk-ink); }
.ledgerkit .widget-checkbox label { overflow: visible; color: var(--lk-ink); font-size: 13px; }
.ledgerkit .widget-label { color: var(--lk-mute); text-align: left; font-size: 13px; }
.ledgerkit .widget-hslider { margin-left: 2px; }
.ledgerkit .widget-hslider .widget-readout { min-width: 44px; max-width: none; width: auto;
  flex-shrink: 0; overflow: visible; white-space: nowrap; }
.ledgerkit .widget-readout { color: var(--lk-ink); font-weight: 700; font-size: 13px; }
.ledgerkit .widget-html-content { font-size: 13px; line-height: 1.45; }
.ledgerkit .ledgerkit-toolbar { display: flex; align-items: center; gap: 8px; flex-wrap: wrap; }
.ledgerkit .ledgerkit-toolbar span { color: var(--lk-mute); font-size: 12px; }
.ledgerkit .ledgerkit-button, .ledgerkit .ledgerkit-toolbar select,
.ledgerkit .jupyter-button:not(.widget-toggle-button) { min-height: 28px; padding: 0 10px;
  font: inherit; font-size: 13px; line-height: 26px; color: var(--lk-ink); cursor: pointer;
  background: var(--lk-background); border: 1px solid var(--lk-rule); border-radius: 5px;
  box-shadow: none; }
.ledgerkit .ledgerkit-copy, .ledgerkit .jupyter-button.mod-primary {
  background: var(--lk-ink) !important; color: var(--lk-background) !important; }
.ledgerkit button:disabled, .ledgerkit select:disabled { opacity: 0.45; cursor: default; }
.ledgerkit .widget-toggle-buttons .widget-toggle-button { min-height: 28px; font-size: 13px;
  color: var(--lk-ink); background: var(--lk-background); border: 1px solid var(--lk-rule);
  box-shadow: none; margin: 0 0 0 -1px; }
.ledgerkit .widget-toggle-buttons .widget-toggle-button.mod-active {
  background: var(--lk-ink); color: var(--lk-background); }
.ledgerkit select, .ledgerkit input, .ledgerkit textarea { color: var(--lk-ink) !important;
  background-color: var(--lk-background) !important; border-color: var(--lk-rule) !important;
  font-family: inherit; }
.ledgerkit-dark select { background-image: none !important; appearance: auto !important;
  padding-right: 4px !important; }
.ledgerkit select { text-overflow: ellipsis; }
.ledgerkit select option:checked { color: var(--lk-background);
  background: var(--lk-ink) linear-gradient(0deg, var(--lk-ink) 0%, var(--lk-ink) 100%); }
.ledgerkit .progress { background: var(--lk-grid); }
.ledgerkit .progress-bar { background-color: var(--lk-mute) !important; }
.ledgerkit select option { background: var(--lk-background); }
.ledgerkit .noUi-target { background: var(--lk-grid); border: 0; box-shadow: none; }
.ledgerkit .noUi-connect { background: var(--lk-rule); }
.ledgerkit .noUi-handle { background: var(--lk-background); border: 2px solid var(--lk-ink);
  box-shadow: none; }
.ledgerkit :is(button, select, input, textarea, summary, .noUi-handle):focus-visible {
  outline: 3px solid var(--lk-ink) !important; outline-offset: 2px; }
.ledgerkit table { border-collapse: collapse; color: var(--lk-ink); }
.ledgerkit th { font-weight: 400; color: var(--lk-mute); }
.ledgerkit td, .ledgerkit th { padding: 3px 0 3px 14px; text-align: right; white-space: nowrap;
  vertical-align: top; }
.ledgerkit td:first-child, .ledgerkit th:first-child { text-align: left; padding-left: 0;
  white-space: normal; }
.ledgerkit .ledgerkit-left :is(td, th) { text-align: left; white-space: normal; }
.ledgerkit .ledgerkit-left td:last-child { overflow-wrap: anywhere; }
.ledgerkit .ledgerkit-left table { margin-bottom: 14px; }
.ledgerkit .ledgerkit-left :is(h1, h2) { margin: 14px 0 6px; color: var(--lk-ink); }
.ledgerkit h1 { font-size: 17px; }
.ledgerkit h2 { font-size: 15px; }
.ledgerkit thead th { border-bottom: 1px solid var(--lk-grid); }
.ledgerkit .ledgerkit-swatch { display: inline-block; width: 11px; height: 11px;
  margin-right: 8px; }
.ledgerkit .ledgerkit-verdict p { margin: 2px 0; max-width: 46em; }
.ledgerkit pre { white-space: pre-wrap; word-break: normal;
  overflow-wrap: anywhere; font-size: 12px;
  line-height: 1.5; background: var(--lk-free); color: var(--lk-ink); padding: 10px 12px;
  margin: 6px 0; border-radius: 4px; font-family: var(--jp-code-font-family, monospace); }
.ledgerkit summary { cursor: pointer; font-size: 13px; color: var(--lk-ink); padding: 4px 0; }
.ledgerkit .ledgerkit-note { color: var(--lk-mute); font-size: 12px; }
.ledgerkit .ledgerkit-error { border-left: 4px solid var(--lk-alert); padding: 6px 10px;
  margin-top: 8px; color: var(--lk-ink); background: var(--lk-free); }
.ledgerkit .ledgerkit-error b { color: var(--lk-alert); }
.ledgerkit .ledgerkit-stale .ledgerkit-figure { opacity: 0.45; }
"""

_TOKENS = ("background", "ink", "mute", "rule", "grid", "free", "alert")


def style_sheet() -> str:
    """Return the sheet of all panels, with the tokens of each theme under its class.

    Examples
    --------
    >>> "--lk-ink: #1B1F27" in style_sheet()
    True
    """
    sheet = _SHEET.replace("%(font)s", FONT_STACK)
    for name in ("article", "dark"):
        look = THEMES[name]
        tokens = " ".join(f"--lk-{token}: {getattr(look, token)};" for token in _TOKENS)
        sheet += (
            f".ledgerkit-{name} {{ {tokens} background: {look.background}; color: {look.ink}; "
            f"color-scheme: {'dark' if name == 'dark' else 'light'}; }}\n"
        )
    return f"<style>{sheet}</style>"
