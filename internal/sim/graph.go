package sim

import (
	"fmt"
	"math"
	"strings"
)

// Panel is a part of the graph: a figure by the number of servers, under each policy.
type Panel struct {
	Title  string
	Unit   string
	Limit  float64 // above it the installation is broken
	Lowest float64 // of the axis; smaller figures stand there
	Most   float64 // likewise, greater ones
	Value  func(o Outcome) float64
}

// Panels returns what the graph shows of the dramas, in their order.
func Panels() []Panel {
	return []Panel{
		{Title: "Mass expiry: until all threads went on", Unit: "s", Limit: 120, Lowest: 30, Most: 3600, Value: func(o Outcome) float64 {
			return max(o.Drained, o.Extrapolated).Seconds()
		}},
		{Title: "Rolling restart: work of the busiest master", Unit: "%", Limit: 70, Lowest: 1, Most: 100, Value: func(o Outcome) float64 {
			return 100 * o.BusiestMaster
		}},
		{Title: "Loss of a master: p99 lateness on the others", Unit: "s", Limit: 5, Lowest: 0.01, Most: 100, Value: lateP99},
		{Title: "Hot tenant: p99 lateness of the others", Unit: "s", Limit: 5, Lowest: 0.01, Most: 100, Value: lateP99},
	}
}

// lateP99 returns how late threads went on, also when nearly none did.
func lateP99(o Outcome) float64 {
	if o.Done < o.Threads*99/100 {
		return math.Inf(1)
	}
	return o.P99
}

// Size of the graph.
const (
	panelWidth, panelHeight = 440, 260
	plotLeft, plotTop       = 56, 40
	plotWidth, plotHeight   = 360, 170
)

// colorOf returns the color of the lines of a policy.
func colorOf(p Policy) string {
	if p == All {
		return "#c0392b"
	}
	return "#1f6feb"
}

// DrawGraph draws the outcomes of the dramas as SVG. They are by drama, as Dramas has them.
func DrawGraph(outcomes map[string][]Outcome, most int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", 2*panelWidth, 2*panelHeight+40)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", 2*panelWidth, 2*panelHeight+40)
	for i, d := range Dramas() {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", i%2*panelWidth, i/2*panelHeight)
		drawPanel(&b, Panels()[i], outcomes[d.Name], most)
		b.WriteString("</g>\n")
	}
	y := 2*panelHeight + 20
	drawKey(&b, 56, y, colorOf(All), "every server looks at every partition, and reads the whole roster")
	drawKey(&b, 470, y, colorOf(Owners), "servers share the looks, and read what changes in the roster")
	b.WriteString("</svg>\n")
	return b.String()
}

func drawKey(b *strings.Builder, x, y int, color, text string) {
	fmt.Fprintf(b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="2"/><text x="%d" y="%d" font-size="11">%s</text>`+"\n",
		x, y, x+20, y, color, x+26, y+4, text)
}

// drawPanel draws one panel. Both axes are logarithmic.
func drawPanel(b *strings.Builder, p Panel, outcomes []Outcome, most int) {
	x := func(servers int) float64 {
		return plotLeft + plotWidth*math.Log10(float64(servers))/math.Log10(float64(most))
	}
	y := func(value float64) float64 {
		value = min(max(value, p.Lowest), p.Most)
		return plotTop + plotHeight*(1-math.Log(value/p.Lowest)/math.Log(p.Most/p.Lowest))
	}
	fmt.Fprintf(b, `<text x="%d" y="22" font-size="13" font-weight="bold">%s</text>`+"\n", plotLeft, p.Title)
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#999"/>`+"\n", plotLeft, plotTop, plotWidth, plotHeight)
	for servers := 1; servers <= most; servers *= 10 {
		fmt.Fprintf(b, `<text x="%.0f" y="%d" text-anchor="middle">%d</text>`+"\n", x(servers), plotTop+plotHeight+16, servers)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" fill="#555">servers, each with 1,000,000 parked threads and 1,000 live runs</text>`+"\n",
		plotLeft+plotWidth/2, plotTop+plotHeight+34)
	for _, value := range []float64{p.Lowest, p.Limit, p.Most} {
		fmt.Fprintf(b, `<text x="%d" y="%.0f" text-anchor="end">%g %s</text>`+"\n", plotLeft-6, y(value)+4, value, p.Unit)
	}
	fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#999" stroke-dasharray="4 3"/>`+"\n",
		plotLeft, y(p.Limit), plotLeft+plotWidth, y(p.Limit))
	for _, policy := range []Policy{All, Owners} {
		var points []string
		broken := 0
		for _, o := range outcomes {
			if o.Policy != policy {
				continue
			}
			value := p.Value(o)
			if value == 0 { // there are no such threads
				continue
			}
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(o.Size.Servers), y(value)))
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x(o.Size.Servers), y(value), colorOf(policy))
			if value > p.Limit && broken == 0 {
				broken = o.Size.Servers
			}
		}
		fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(points, " "), colorOf(policy))
		if broken > 0 {
			fmt.Fprintf(b, `<text x="%.0f" y="%.0f" text-anchor="end" fill="%s">breaks at %d servers</text>`+"\n",
				x(broken)-8, y(p.Limit)-6, colorOf(policy), broken)
		}
	}
}
