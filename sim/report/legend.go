package report

import "unicode/utf8"

// entry is one name in the legend, with its place.
type entry struct {
	class, name string
	x, y        float64
}

// These are the legend's measures, in pixels.
const (
	legendLeft   = 20.0
	legendTop    = 72.0
	legendRow    = 17.0
	legendGap    = 16.0
	legendSymbol = 18.0
)

// names returns the legend of a timeline's chart: its areas, lines and marks, not placed yet.
func names(failures bool) []entry {
	var out []entry
	for _, b := range bands {
		out = append(out, entry{class: b.class, name: b.name})
	}
	out = append(out, entry{class: "floor", name: "floor"}, entry{class: "ceiling", name: "ceiling"})
	if failures {
		out = append(out, entry{class: "failure", name: "failed, replaced"})
	}
	return out
}

// placed sets the places of entries: in one row, or in more rows if one is too narrow.
func placed(width float64, out []entry) []entry {
	x, y := legendLeft, legendTop
	for i := range out {
		e := &out[i]
		wide := legendSymbol + float64(utf8.RuneCountInString(e.name))*letter
		if x > legendLeft && x+wide > width-legendLeft {
			x, y = legendLeft, y+legendRow
		}
		e.x, e.y = x, y
		x += wide + legendGap
	}
	return out
}

// legend draws entries.
func (c *canvas) legend(entries []entry) {
	for _, e := range entries {
		switch e.class {
		case "floor", "ceiling":
			c.printf(`<path class="line %s" d="M%f %fh13"/>`, e.class, e.x, e.y-4)
		case "failure":
			c.printf(`<path class="failure" d="M%f %fl-4 8h8Z"/>`, e.x+6, e.y-8)
		default:
			c.printf(`<rect class="%s" x="%f" y="%f" width="12" height="12" rx="2"/>`, e.class, e.x, e.y-10)
		}
		c.printf(`<text class="ink" x="%f" y="%f">%s</text>`+"\n", e.x+legendSymbol, e.y, e.name)
	}
}

// shapes are the styles that all themes share. Dashes tell the limits apart without colour.
const shapes = `text{font:12px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
.title{font-size:16px;font-weight:600}
.number{text-anchor:end}
.tick{text-anchor:middle}
.name{font-weight:600}
.grid,.axis,.line,.lead,.halo{fill:none}
.line{stroke-width:2}
.line.floor{stroke-dasharray:7 4}
.line.ceiling{stroke-dasharray:2 3}
.halo{stroke-width:4;stroke-opacity:.55}
`

// fleetShapes are further styles for the chart of a history.
const fleetShapes = `.blip{fill:none;stroke-width:2}
.moment{fill:none;stroke-width:1}
.edit-moment{stroke-dasharray:1 3}
.kill{fill:none;stroke-width:2.5}
`

const fleetLight = `.moving{fill:#3fa796}
.unknown{fill:#e2725b}
.crashing{fill:#c0508c}
.failed{fill:#7d1f8c}
.blip,.violation-moment{stroke:#d1002c}
.edit-moment{stroke:#1b1f24}
.edit{fill:#1b1f24}
.kill{stroke:#7d1f8c}
.fault{fill:#b35900}
.outage{fill:#57606a}
.freeze{fill:#0b7285}
.violation{fill:#d1002c}
`

const fleetDark = `.moving{fill:#2b8173}
.unknown{fill:#c65a45}
.crashing{fill:#b04a80}
.failed{fill:#a45cb5}
.blip,.violation-moment{stroke:#ff5c77}
.edit-moment{stroke:#f2f5f8}
.edit{fill:#f2f5f8}
.kill{stroke:#dd8cf0}
.fault{fill:#f0a04b}
.outage{fill:#9aa7b5}
.freeze{fill:#4cc9d9}
.violation{fill:#ff5c77}
`

const lightColours = `.paper{fill:#fff}
.title,.ink{fill:#24292f}
.grid{stroke:#d8dee4}
.axis{stroke:#57606a}
.old{fill:#9aa7b5}
.new{fill:#3a86d9}
.lacking{fill:#f2b04b}
.going{fill:#d3dae1}
.failure{fill:#7d1f8c;stroke:#fff}
.halo{stroke:#fff}
.floor{stroke:#b3122a}
.ceiling{stroke:#1b1f24}
.floor-name{fill:#b3122a}
.ceiling-name{fill:#1b1f24}
`

const darkColours = `.paper{fill:#12171d}
.title,.ink{fill:#dce3ea}
.grid{stroke:#2c343d}
.axis{stroke:#8b97a3}
.old{fill:#5f6d7c}
.new{fill:#2f6fbd}
.lacking{fill:#b87a1a}
.going{fill:#414c58}
.failure{fill:#dd8cf0;stroke:#12171d}
.halo{stroke:#12171d}
.floor{stroke:#ff8a95}
.ceiling{stroke:#f2f5f8}
.floor-name{fill:#ff8a95}
.ceiling-name{fill:#f2f5f8}
`

// style returns the style sheet of a theme. A page that contains the chart shares its class names.
func style(theme Theme) string {
	return "<style>\n" + shapes + themed(theme, lightColours, darkColours) + "</style>\n"
}

// fleetStyle is the style sheet of the chart of a history.
func fleetStyle(theme Theme) string {
	return shapes + fleetShapes + themed(theme, lightColours+fleetLight, darkColours+fleetDark)
}

// themed returns the colours of a theme.
func themed(theme Theme, light, dark string) string {
	switch theme {
	case Dark:
		return dark
	case Adaptive:
		return light + "@media (prefers-color-scheme:dark){\n" + dark + "}\n"
	case Light:
	}
	return light
}
