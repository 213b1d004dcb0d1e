package graph

import (
	"fmt"
	"strings"
)

// Mermaid draws the graph as a Mermaid flowchart: solid arrows are edges,
// dotted ones conditional edges and gotos, a rounded bar joins. Interrupts to
// people are slanted, subgraphs double-edged.
func (g *Graph) Mermaid() string {
	d := mermaidWriter{graph: g, nodeIDs: make(map[string]string)}
	d.writeLine("flowchart TD")
	for _, n := range g.Nodes {
		d.writeNode(n)
	}
	d.writeLine("  END([END])")
	d.nodeIDs[End] = "END"
	drawn := make(map[string]bool)
	for i := range g.Spec.Edges {
		d.writeEdge(&g.Spec.Edges[i], drawn)
	}
	for i := range g.Spec.Branches {
		d.writeBranch(&g.Spec.Branches[i])
	}
	for _, n := range g.Nodes[1:] {
		for _, to := range n.Spec.Destinations {
			d.writeArrow(n.Name, "-.->", "goto", to)
		}
		if n.Handler != nil {
			d.writeArrow(n.Name, "-.->", "on error", n.Handler.Name)
		}
		if g.endsRun(n) {
			d.writeArrow(n.Name, "-->", "", End)
		}
	}
	return d.text.String()
}

// endsRun reports whether a branch of the run ends at the node.
func (g *Graph) endsRun(n *Node) bool {
	if len(n.Edges)+len(n.Joins)+len(n.Branches) > 0 || n.canGoAnywhere() || len(n.Spec.Destinations) > 0 {
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

type mermaidWriter struct {
	graph   *Graph
	nodeIDs map[string]string
	text    strings.Builder
}

func (d *mermaidWriter) writeLine(s string) {
	d.text.WriteString(s)
	d.text.WriteByte('\n')
}

func (d *mermaidWriter) writeNode(n *Node) {
	id := fmt.Sprintf("n%d", n.Index)
	d.nodeIDs[n.Name] = id
	label := `"` + escapeLabel(n.Name) + `"`
	switch n.Kind {
	case KindStart:
		d.nodeIDs[n.Name] = "START"
		d.writeLine("  START([START])")
	case KindAsk:
		d.writeLine("  " + id + "[/" + label + "/]")
	case KindGraph:
		d.writeLine("  " + id + "[[" + label + "]]")
	case KindRemote:
		d.writeLine("  " + id + "[(" + label + ")]")
	case KindFunction, KindExpr:
		d.writeLine("  " + id + "[" + label + "]")
	}
}

func (d *mermaidWriter) writeEdge(e *EdgeSpec, drawn map[string]bool) {
	key := strings.Join(e.From, "\x00") + "\x00\x00" + e.To
	if drawn[key] {
		return
	}
	drawn[key] = true
	if len(e.From) == 1 {
		d.writeArrow(e.From[0], "-->", "", e.To)
		return
	}
	id := fmt.Sprintf("j%d", len(drawn))
	d.writeLine("  " + id + `(["all of"])`)
	for _, from := range e.From {
		d.writeLine("  " + d.nodeIDs[from] + " --- " + id)
	}
	d.writeLine("  " + id + " --> " + d.nodeIDs[e.To])
}

func (d *mermaidWriter) writeBranch(s *BranchSpec) {
	for _, c := range s.Cases {
		label := c.When
		if label == "" {
			label = "else"
		}
		for _, to := range c.To {
			d.writeArrow(s.From, "-.->", label, to)
		}
	}
	for _, key := range sortedKeys(s.Paths) {
		d.writeArrow(s.From, "-.->", key, s.Paths[key])
	}
	for _, to := range s.Then {
		d.writeArrow(s.From, "-.->", "", to)
	}
	if (s.Expr != "" || s.Router != "") && s.Paths == nil && s.Then == nil {
		for _, n := range d.graph.Nodes[1:] {
			d.writeArrow(s.From, "-.->", "", n.Name)
		}
		d.writeArrow(s.From, "-.->", "", End)
	}
}

func (d *mermaidWriter) writeArrow(from, arrow, label, to string) {
	if label != "" {
		arrow += `|"` + escapeLabel(label) + `"|`
	}
	d.writeLine("  " + d.nodeIDs[from] + " " + arrow + " " + d.nodeIDs[to])
}

// escapeLabel keeps text from ending a Mermaid label, and long ones short.
func escapeLabel(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strings.NewReplacer(`"`, "#quot;", "#", "#35;", "<", "#lt;", ">", "#gt;", "\n", " ", "`", "#96;").Replace(s)
}
