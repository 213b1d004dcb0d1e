package graph

import (
	"fmt"
	"strings"
)

// Mermaid draws the graph as a Mermaid flowchart: solid arrows are edges,
// dotted ones conditional edges and gotos, a rounded bar joins. Questions to
// people are slanted, subgraphs double-edged.
func (g *Graph) Mermaid() string {
	d := drawing{g: g, ids: make(map[string]string)}
	d.line("flowchart TD")
	for _, n := range g.Nodes {
		d.node(n)
	}
	d.line("  END([END])")
	d.ids[End] = "END"
	drawn := make(map[string]bool)
	for i := range g.Spec.Edges {
		d.edge(&g.Spec.Edges[i], drawn)
	}
	for i := range g.Spec.Branches {
		d.branch(&g.Spec.Branches[i])
	}
	for _, n := range g.Nodes[1:] {
		for _, to := range n.Spec.Destinations {
			d.arrow(n.Name, "-.->", "goto", to)
		}
		if n.Handler != nil {
			d.arrow(n.Name, "-.->", "on error", n.Handler.Name)
		}
		if g.stops(n) {
			d.arrow(n.Name, "-->", "", End)
		}
	}
	return d.text.String()
}

// stops reports whether a branch of the run ends at the node.
func (g *Graph) stops(n *Node) bool {
	if len(n.Edges)+len(n.Joins)+len(n.Branches) > 0 || n.goesAnywhere() || len(n.Spec.Destinations) > 0 {
		return false
	}
	for i := range g.Spec.Edges {
		e := &g.Spec.Edges[i]
		if e.To == End && len(e.From) == 1 && e.From[0] == n.Name {
			return false // drawn already
		}
	}
	return true
}

type drawing struct {
	g    *Graph
	ids  map[string]string
	text strings.Builder
}

func (d *drawing) line(s string) {
	d.text.WriteString(s)
	d.text.WriteByte('\n')
}

func (d *drawing) node(n *Node) {
	id := fmt.Sprintf("n%d", n.Index)
	d.ids[n.Name] = id
	label := `"` + escapeLabel(n.Name) + `"`
	switch n.Kind {
	case KindStart:
		d.ids[n.Name] = "START"
		d.line("  START([START])")
	case KindAsk:
		d.line("  " + id + "[/" + label + "/]")
	case KindGraph:
		d.line("  " + id + "[[" + label + "]]")
	case KindRemote:
		d.line("  " + id + "[(" + label + ")]")
	case KindFunction, KindExpr:
		d.line("  " + id + "[" + label + "]")
	}
}

func (d *drawing) edge(e *EdgeSpec, drawn map[string]bool) {
	key := strings.Join(e.From, "\x00") + "\x00\x00" + e.To
	if drawn[key] {
		return
	}
	drawn[key] = true
	if len(e.From) == 1 {
		d.arrow(e.From[0], "-->", "", e.To)
		return
	}
	id := fmt.Sprintf("j%d", len(drawn))
	d.line("  " + id + `(["all of"])`)
	for _, from := range e.From {
		d.line("  " + d.ids[from] + " --- " + id)
	}
	d.line("  " + id + " --> " + d.ids[e.To])
}

func (d *drawing) branch(s *BranchSpec) {
	for _, c := range s.Cases {
		label := c.When
		if label == "" {
			label = "else"
		}
		for _, to := range c.To {
			d.arrow(s.From, "-.->", label, to)
		}
	}
	for _, key := range sortedKeys(s.Paths) {
		d.arrow(s.From, "-.->", key, s.Paths[key])
	}
	for _, to := range s.Then {
		d.arrow(s.From, "-.->", "", to)
	}
	if (s.Expr != "" || s.Router != "") && s.Paths == nil && s.Then == nil {
		for _, n := range d.g.Nodes[1:] {
			d.arrow(s.From, "-.->", "", n.Name)
		}
		d.arrow(s.From, "-.->", "", End)
	}
}

func (d *drawing) arrow(from, arrow, label, to string) {
	if label != "" {
		arrow += `|"` + escapeLabel(label) + `"|`
	}
	d.line("  " + d.ids[from] + " " + arrow + " " + d.ids[to])
}

// escapeLabel keeps text from ending a Mermaid label, and long ones short.
func escapeLabel(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strings.NewReplacer(`"`, "#quot;", "#", "#35;", "<", "#lt;", ">", "#gt;", "\n", " ", "`", "#96;").Replace(s)
}
