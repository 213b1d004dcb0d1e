package drawing

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/graphd-dev/graphd/internal/visible"
)

// fontFamily names the fonts of the reader's system.
const fontFamily = "ui-sans-serif, system-ui, sans-serif"

// EncodeSVG returns the drawing as SVG, which needs nothing beside it. graph is the name of the graph.
// Its colours are those of the theme; with Auto they are light, and dark where the reader prefers
// that.
func (d *Drawing) EncodeSVG(graph string, theme Theme) []byte {
	w := &svgWriter{theme: theme}
	w.writeElement("<svg%s>", formatAttribute("xmlns", "http://www.w3.org/2000/svg")+formatMeasure("width", d.Width)+formatMeasure("height", d.Height)+
		formatAttribute("viewBox", "0 0 "+formatNumber(d.Width)+" "+formatNumber(d.Height))+formatAttribute("role", "img")+
		formatAttribute("aria-labelledby", "graph-title graph-description")+formatAttribute("font-family", fontFamily))
	w.writeElement(`<title id="graph-title">%s</title>`, escapeXML("Graph "+visible.Line(graph)))
	w.writeElement(`<desc id="graph-description">%s</desc>`, escapeXML(d.describeNodes()))
	if theme == Auto {
		w.writeDarkColours()
	}
	w.paintBox(box{Place: Place{d.Width / 2, d.Height / 2, d.Width, d.Height}, radius: nodeRadius, fill: roleGround})
	d.paintAll(w)
	w.writeElement(`</svg>`)
	return []byte(w.text.String())
}

// describeNodes says in words what leads where, for those who don't see the drawing.
func (d *Drawing) describeNodes() string {
	shown := make(map[string]string, len(d.Nodes))
	for i := range d.Nodes {
		shown[d.Nodes[i].Name] = d.Nodes[i].findTitle()
	}
	var lines []string
	for i := range d.Edges {
		e := &d.Edges[i]
		line := shown[e.From] + " to " + shown[e.To]
		switch {
		case e.Label != "":
			line += " (" + e.Label + ")"
		case e.IsConditional:
			line += " (perhaps)"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

// svgWriter is a canvas that writes an element a line.
type svgWriter struct {
	theme Theme
	text  strings.Builder
}

func (w *svgWriter) writeElement(format string, args ...any) {
	b := &w.text
	fmt.Fprintf(b, format+"\n", args...)
}

// writeDarkColours replaces the light colours where the reader prefers dark ones. Programs that know
// no style show the light ones.
func (w *svgWriter) writeDarkColours() {
	var b strings.Builder
	for _, r := range []role{roleGround, rolePanel, roleStroke, roleName, roleNote, roleAccent} {
		fmt.Fprintf(&b, ".f-%[1]s{fill:%[2]s}.s-%[1]s{stroke:%[2]s}", r, formatColour(r.findColours().dark))
	}
	w.writeElement(`<style>@media (prefers-color-scheme:dark){%s}</style>`, b.String())
}

// paintBox writes a rectangle.
func (w *svgWriter) paintBox(b box) {
	rect := "<rect" + formatMeasure("x", b.X-b.Width/2) + formatMeasure("y", b.Y-b.Height/2) + formatMeasure("width", b.Width) + formatMeasure("height", b.Height) +
		formatMeasure("rx", b.radius) + w.formatColours(b.fill, b.border, b.width)
	if b.title == "" {
		w.writeElement("%s/>", rect)
		return
	}
	w.writeElement("%s><title>%s</title></rect>", rect, escapeXML(b.title))
}

// paintShape writes a path.
func (w *svgWriter) paintShape(s shape) {
	attributes := formatAttribute("d", s.path) + w.formatColours(s.fill, s.line, s.width)
	if s.dx != 0 || s.dy != 0 {
		attributes += formatAttribute("transform", "translate("+formatNumber(s.dx)+","+formatNumber(s.dy)+")")
	}
	if s.line != "" {
		attributes += formatAttribute("stroke-linecap", "round") + formatAttribute("stroke-linejoin", "round")
	}
	if s.dashed {
		attributes += formatAttribute("stroke-dasharray", fmt.Sprint(dashLength, dashGap))
	}
	w.writeElement("<path%s/>", attributes)
}

// paintText writes a text.
func (w *svgWriter) paintText(t text) {
	weight := "500"
	if t.bold {
		weight = "600"
	}
	attributes := formatMeasure("x", t.x) + formatMeasure("y", t.y) + formatMeasure("font-size", t.size) + formatAttribute("font-weight", weight)
	if t.centered {
		attributes += formatAttribute("text-anchor", "middle")
	}
	w.writeElement("<text%s>%s</text>", attributes+w.formatColours(t.fill, "", 0), escapeXML(t.content))
}

// formatColours returns the attributes of colours.
func (w *svgWriter) formatColours(fill, line role, width float64) string {
	attributes, classes := formatAttribute("fill", "none"), []string{}
	if fill != "" {
		attributes = formatAttribute("fill", formatColour(fill.findColours().choose(w.theme)))
		classes = append(classes, "f-"+string(fill))
	}
	if line != "" {
		attributes += formatAttribute("stroke", formatColour(line.findColours().choose(w.theme))) + formatMeasure("stroke-width", width)
		classes = append(classes, "s-"+string(line))
	}
	if w.theme == Auto {
		attributes += formatAttribute("class", strings.Join(classes, " "))
	}
	return attributes
}

func formatAttribute(name, value string) string { return " " + name + `="` + escapeXML(value) + `"` }

func formatMeasure(name string, n float64) string { return formatAttribute(name, formatNumber(n)) }

func formatColour(colour uint32) string { return fmt.Sprintf("#%06x", colour) }

// escapeXML makes text of a text. What hides is a mark already.
func escapeXML(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a builder takes everything
	return b.String()
}
