"""Define the look of the app with system fonts and the heat colours of the report."""

import re
from pathlib import Path
from typing import Any

import cardiobench.report.page
from cardiobench.leaderboard.grid import SHADES
from cardiobench.report.overview import STEPS

NAMES = (*SHADES, "--cell", "--model", "--floor", "--muted")
PAGE = Path(cardiobench.report.page.__file__).parent / "templates" / "page.css"
CSS = """
.scale{display:flex;flex-wrap:wrap;gap:2px;font-size:.8rem}
.scale span{padding:.1rem .6rem;color:var(--cell);border-radius:3px}
#head{align-items:baseline;gap:.2rem 2rem}
#head>*{width:auto!important;min-width:0!important;flex:0 1 auto!important}
#head h1{font-size:1.5rem;margin:0}
#counts p,#lead p{margin:0}
.gradio-container main{gap:.6rem!important}
#filters{align-items:end;gap:.6rem}
#more-filters:not(.cb-open){display:none}
#switches{gap:.5rem;align-self:center}
#filters .secondary-wrap input{text-overflow:ellipsis;padding-right:1.6rem}
@media (max-width:900px){#filters .secondary-wrap input{padding-right:.9rem;margin-left:0}#filters .wrap-inner{padding-left:.3rem}}
#overview :is(.header-cell,.body-cell,td,.cell-wrap span){font-size:13px;line-height:1.35}
#overview .header-cell span{font-size:12px}
#overview .body-cell:not(.cell-solo):nth-child(2) span{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:4;overflow:hidden}
#heat table{border-collapse:collapse;font-size:.82rem}
#heat{padding:0!important}
#heat :is(table,tr,td,th){border:0!important}
#heat td,#heat th{padding:.15rem .35rem;font-weight:400}
#heat td{min-width:2.4rem;text-align:center;white-space:nowrap}
#heat td[style]{color:var(--cell)}
#heat thead th{font-weight:600;text-align:left;vertical-align:bottom}
#heat .cb-tasks span{writing-mode:vertical-rl;transform:rotate(180deg)}
#heat tbody th{text-align:left;max-width:24rem;overflow-wrap:anywhere;line-height:1.3}
.cb-heat p{margin:.2rem 0}
.cb-scroll{overflow:auto;max-height:640px;margin-top:.4rem}
button[role=tab].selected{color:var(--body-text-color)!important}
footer *{color:var(--body-text-color)!important}
.cb-chart{margin:0;font-size:.85rem;--dot:var(--model)}
.cb-chart figcaption{font-weight:600}
.cb-legend{display:flex;flex-wrap:wrap;gap:.2rem 1rem;margin:.3rem 0}
.cb-row{display:grid;grid-template-columns:minmax(0,19rem) minmax(0,1fr);gap:.6rem;align-items:center}
.cb-name{overflow-wrap:anywhere}
.cb-name span{color:var(--muted);display:inline-block;min-width:3rem}
.cb-track{position:relative;height:1.5rem;margin:0 .6rem;border-bottom:1px solid var(--border-color-primary)}
.cb-axis .cb-track{border:0}
.cb-track>*,.cb-plot>*{position:absolute}
.cb-axis span,.cb-right{transform:translateX(-50%);color:var(--muted)}
.cb-line{top:50%;height:2px;background:var(--dot)}
.cb-dot{width:9px;height:9px;margin:-4.5px;border-radius:50%;background:var(--dot)}
.cb-track .cb-dot{top:50%}
.cb-floor{top:15%;height:70%;width:2px;background:var(--floor)}
.cb-plot{position:relative;height:22rem;margin:.6rem .6rem 1.8rem 3rem;border:solid var(--border-color-primary);border-width:0 0 1px 1px}
.cb-plot .cb-dot{margin:0 0 -4.5px -4.5px}
.cb-plot svg{inset:0;width:100%;height:100%;overflow:visible}
.cb-plot polyline{fill:none;stroke:var(--muted);stroke-width:1.5;vector-effect:non-scaling-stroke}
.cb-up{left:-2.9rem;width:2.5rem;text-align:right;transform:translateY(50%);color:var(--muted)}
.cb-right{bottom:-1.6rem}
.cb-up-line{width:1px;background:var(--dot);opacity:.6}
.cb-level{left:0;right:0;border-top:2px dashed var(--floor)}
.cb-label{padding:0 .5rem .2rem;font-size:.75rem;white-space:nowrap}
.cb-before{transform:translateX(-100%)}
.cb-key{display:inline-block;width:9px;height:9px;margin-right:.3rem;border-radius:50%;background:var(--dot)}
.cb-floor-key{border-radius:0;width:3px;height:.9rem;vertical-align:middle;background:var(--floor)}
.cb-baseline{--dot:var(--muted)}
.cb-other{--dot:var(--a4)}
.cb-dot.cb-other,.cb-key.cb-other{background:var(--body-background-fill);box-shadow:inset 0 0 0 2px var(--dot)}
@media (min-width:700px){
#overview .virtual-row{width:max-content!important;min-width:100%}
#overview :is(.header-cell,.body-cell):nth-child(1){position:sticky;left:0!important;z-index:3;background:var(--background-fill-primary)}
#overview :is(.header-cell,.body-cell):nth-child(2){position:sticky;left:66px!important;z-index:3;background:var(--background-fill-primary)}
#overview :is(.header-cell,td,.body-cell):nth-child(2){width:220px!important;min-width:220px!important;max-width:220px!important;flex-basis:220px!important}
}
@media (min-width:1240px){#overview :is(.header-cell,td,.body-cell):nth-child(2){width:300px!important;min-width:300px!important;max-width:300px!important;flex-basis:300px!important}#overview .body-cell:not(.cell-solo):nth-child(2) span{-webkit-line-clamp:2}}
@media (min-width:1240px){:is(#scores,#costs,#model-tasks) :is(.header-cell,td,.body-cell):nth-child(2){width:240px!important;min-width:240px!important;max-width:240px!important}}
@media (max-width:600px){#head h1{font-size:1.2rem}#counts,#lead{font-size:.85rem}#switches{flex:1 1 100%!important;flex-flow:row!important;align-items:center}
#more-filters .form{flex-flow:column}
#heat tbody th{max-width:9rem}
#overview .body-cell:not(.cell-solo):nth-child(2) span{-webkit-line-clamp:5}}
@media (max-width:600px){.cb-row{grid-template-columns:minmax(0,1fr);gap:0}.cb-label{display:none}}
"""


def options() -> dict[str, Any]:
    """Return the arguments of `launch` that determine the appearance."""
    return {"theme": theme(), "css": colours() + CSS}


def theme() -> Any:
    """Return a theme with system fonts, so that no font is downloaded."""
    import gradio as gr

    fonts = ["system-ui", "sans-serif"]  # Tables use the font called monospace.
    return gr.themes.Default(font=fonts, font_mono=fonts)


def colours() -> str:
    """Convert the colours of the report's style sheet to CSS for the app, whose dark mode is a class."""
    light, dark = re.findall(r":root\{([^}]*)\}", PAGE.read_text(encoding="utf-8"))[:2]
    return f":root{{{_chosen(light)}}}.dark{{{_chosen(dark)}}}"


def _chosen(rules: str) -> str:
    found = (rule.strip() for rule in rules.split(";"))
    return ";".join(rule for rule in found if rule.partition(":")[0] in NAMES)


def scale() -> str:
    """Return the heat colour scale as HTML."""
    ends = [f"{100 * step:+.0f} %".replace("-", "−") for step in STEPS]
    texts = [f"below {ends[0]}", *(f"from {end}" for end in ends)]
    shades = (f'<span style="background:var({name})">{text}</span>' for name, text in zip(SHADES, texts, strict=True))
    return f'<div class="scale">{"".join(shades)}</div>'
