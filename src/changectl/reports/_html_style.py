"""How the page looks: on a screen, in the dark, on a phone, and on paper without colours."""

STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#16191d;--soft:#5a636e;--rule:#d9dde2;--pale:#f4f6f8;
--before:#6a7480;--after:#0b5cad;--good:#136c3a;--bad:#a8201a;--warn:#8a5a00}
@media (prefers-color-scheme:dark){:root{--paper:#14171a;--ink:#e8eaed;--soft:#a2abb5;--rule:#343b43;--pale:#1d2227;
--before:#a2abb5;--after:#6cb2ff;--good:#62c98a;--bad:#ff8a80;--warn:#e8b45a}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,
"Noto Sans","Liberation Sans",sans-serif;font-variant-numeric:tabular-nums;overflow-wrap:anywhere;
-webkit-text-size-adjust:100%}
main{max-width:70rem;margin:0 auto;padding:2.5rem 1.5rem 3rem}
h1,h2,h3{line-height:1.2;text-wrap:balance;margin:0}
h1{font-size:1.9rem;letter-spacing:-.015em;font-weight:650}
h2{font-size:1.3rem;letter-spacing:-.01em;margin-top:3rem;padding-top:1rem;border-top:2px solid var(--ink)}
h3{font-size:1rem;margin-top:2rem}
p{margin:.5rem 0;max-width:44rem}
.over{color:var(--soft);font-size:.85rem;margin:0 0 .35rem}.wide{overflow-x:auto}
.end{display:inline-flex;align-items:baseline;gap:.55rem;margin:1rem 0 0;padding:.35rem .9rem .4rem;border:2px solid;
border-radius:2rem;font-weight:650}
.end b{font-weight:800}
.small,.quiet{font-size:.875rem}
.good{color:var(--good)}.bad{color:var(--bad)}.warning{color:var(--warn)}.soft,.quiet{color:var(--soft)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.3rem 1.25rem;margin:1.5rem 0 0}
dt{color:var(--soft)}dd{margin:0}
ul{margin:.75rem 0;padding-left:1.2rem}li{margin:.35rem 0;max-width:50rem}
table{border-collapse:collapse;width:100%;margin:.75rem 0;font-size:.9rem}
th{font-weight:600;color:var(--soft);font-size:.8rem;vertical-align:bottom;white-space:nowrap}
th,td{text-align:left;padding:.45rem .9rem .45rem 0;border-bottom:1px solid var(--rule)}td{vertical-align:top}
td.n,th.n{text-align:right;white-space:nowrap}td.name{font-weight:600}td{overflow-wrap:break-word}
td svg.drawing{width:150px;height:22px;max-width:none}
tr.breach td.name::before{content:"\\25B2\\00A0"}
.key{display:flex;flex-wrap:wrap;gap:.3rem 1.5rem;
font-size:.85rem;color:var(--soft);margin:.75rem 0 0;align-items:center}
.key span{display:inline-flex;align-items:center;gap:.45rem}.key svg{width:44px;height:16px;flex:none}
.charts{display:grid;
grid-template-columns:repeat(auto-fill,minmax(min(100%,20rem),1fr));gap:1.75rem 2rem;margin-top:1rem}
figure{margin:0;break-inside:avoid}figcaption{font-size:.85rem;line-height:1.4;margin-bottom:.35rem}
figcaption b{display:block;font-size:.95rem}figcaption span{color:var(--soft)}
svg.drawing{display:block;width:100%;height:auto;overflow:visible}svg.patterns{position:absolute}
svg text{fill:var(--ink);font-size:12px}svg text.tick{fill:var(--soft);font-size:11px}svg text.letter{font-weight:650}
svg text.side{font-size:12px}
.grid{stroke:var(--rule);stroke-width:1}.axis{stroke:var(--soft);stroke-width:1}
.curve{fill:none;stroke-linejoin:round}.curve.before{stroke:var(--before);stroke-width:1.75;stroke-dasharray:5 3}
.curve.after{stroke:var(--after);stroke-width:2.75}
.dot.before{fill:var(--paper);stroke:var(--before);stroke-width:2}
.dot.after{fill:var(--after);stroke:var(--paper);stroke-width:1}
.band.before{fill:var(--pale)}.band.after{fill:url(#hatch);stroke:var(--rule);stroke-width:.5}
.ink{stroke:var(--soft);stroke-width:.8;opacity:.55;fill:none}.inkdot{fill:var(--soft);opacity:.7}
.whisker{stroke:var(--ink);stroke-width:1.25}.bounds{stroke:var(--after);stroke-width:3}
.stage{stroke:var(--ink);stroke-width:1}.p1{fill:var(--pale)}.p2{fill:url(#p2)}.p3{fill:url(#p3)}.p4{fill:url(#p4)}
.p5{fill:url(#p5)}.p6{fill:url(#p6)}.number{fill:var(--paper);stroke:var(--ink);stroke-width:.75}
pre{font:.85rem/1.5 ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;background:var(--pale);padding:.8rem 1rem;
margin:.75rem 0;white-space:pre-wrap;border-left:3px solid var(--rule)}
code{font:.9em ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace}
footer{margin-top:3rem;padding-top:1rem;border-top:1px solid var(--rule);font-size:.85rem;color:var(--soft)}
.two{display:grid;grid-template-columns:minmax(0,22rem) minmax(0,1fr);gap:1rem 2.5rem;align-items:start}
@media (max-width:45rem){main{padding:1.5rem 1rem 2rem}h1{font-size:1.5rem}.two{grid-template-columns:1fr}
dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:.55rem}
table.cards thead{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}
table.cards,table.cards tbody,table.cards tr,table.cards td{display:block}
table.cards tr{padding:.6rem 0;border-bottom:1px solid var(--rule)}
table.cards td{border:0;padding:.1rem 0;text-align:left;white-space:normal;display:flex;gap:.75rem}
table.cards td[data-name]::before{content:attr(data-name);color:var(--soft);flex:0 0 5.5rem}
table.cards td.drawn{padding-left:6.25rem}table.cards td{overflow-wrap:anywhere}table.cards td:empty{display:none}}
@media print{:root{color-scheme:light;--paper:#fff;--ink:#000;--soft:#444;--rule:#bbb;--pale:#f0f0f0;--before:#555;
--after:#000;--good:#000;--bad:#000;--warn:#000}
@page{margin:16mm}body{font-size:10.5pt}main{padding:0;max-width:none}h2{break-after:avoid;margin-top:1.5rem}
h3,figcaption,thead{break-after:avoid}tr,figure,pre,.end{break-inside:avoid}
table{font-size:8.5pt}th,td{padding:.25rem .6rem .25rem 0}td svg.drawing{width:105px;height:16px}
.charts{grid-template-columns:repeat(2,1fr)}*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""
