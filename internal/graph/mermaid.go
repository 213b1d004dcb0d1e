package graph

import (
	"fmt"
	"strings"
)

// Mermaid draws the graph as a Mermaid flowchart: solid arrows are edges, dotted
// arrows conditional edges and gotos, a rounded bar joins. Interrupts to people
// are slanted, subgraphs double-edged.
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

func (m *mermaidWriter) writeLine(s string) {
	m.text.WriteString(s)
	m.text.WriteByte('\n')
}

func (m *mermaidWriter) writeNode(n *Node) {
	id := fmt.Sprintf("n%d", n.Index)
	m.nodeIDs[n.Name] = id
	label := `"` + escapeLabel(n.Name) + `"`
	switch n.Kind {
	case KindStart:
		m.nodeIDs[n.Name] = "START"
		m.writeLine("  START([START])")
	case KindAsk:
		m.writeLine("  " + id + "[/" + label + "/]")
	case KindGraph:
		m.writeLine("  " + id + "[[" + label + "]]")
	case KindRemote:
		m.writeLine("  " + id + "[(" + label + ")]")
	case KindFunction, KindExpr:
		m.writeLine("  " + id + "[" + label + "]")
	}
}

func (m *mermaidWriter) writeEdge(e *EdgeSpec, drawn map[string]bool) {
	key := strings.Join(e.From, "\x00") + "\x00\x00" + e.To
	if drawn[key] {
		return
	}
	drawn[key] = true
	if len(e.From) == 1 {
		m.writeArrow(e.From[0], "-->", "", e.To)
		return
	}
	id := fmt.Sprintf("j%d", len(drawn))
	m.writeLine("  " + id + `(["all of"])`)
	for _, from := range e.From {
		m.writeLine("  " + m.nodeIDs[from] + " --- " + id)
	}
	m.writeLine("  " + id + " --> " + m.nodeIDs[e.To])
}

func (m *mermaidWriter) writeBranch(s *BranchSpec) {
	for _, c := range s.Cases {
		label := c.When
		if label == "" {
			label = "else"
		}
		for _, to := range c.To {
			m.writeArrow(s.From, "-.->", label, to)
		}
	}
	for _, key := range sortedKeys(s.Paths) {
		m.writeArrow(s.From, "-.->", key, s.Paths[key])
	}
	for _, to := range s.Then {
		m.writeArrow(s.From, "-.->", "", to)
	}
	if (s.Expr != "" || s.Router != "") && s.Paths == nil && s.Then == nil {
		for _, n := range m.graph.Nodes[1:] {
			m.writeArrow(s.From, "-.->", "", n.Name)
		}
		m.writeArrow(s.From, "-.->", "", End)
	}
}

func (m *mermaidWriter) writeArrow(from, arrow, label, to string) {
	if label != "" {
		arrow += `|"` + escapeLabel(label) + `"|`
	}
	m.writeLine("  " + m.nodeIDs[from] + " " + arrow + " " + m.nodeIDs[to])
}

// escapeLabel keeps text from ending a Mermaid label, and shortens it.
func escapeLabel(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strings.NewReplacer(`"`, "#quot;", "#", "#35;", "<", "#lt;", ">", "#gt;", "\n", " ", "`", "#96;").Replace(s)
}
