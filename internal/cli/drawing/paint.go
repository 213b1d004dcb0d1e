package drawing

import "github.com/graphd-dev/graphd/internal/visible"

// canvas is what a drawing is painted on; what comes later covers what came earlier.
type canvas interface {
	paintBox(b box)
	paintShape(s shape)
	paintText(t text)
}

// box is a rectangle with round corners.
type box struct {
	Place

	radius float64
	fill   role
	border role    // "" = none
	width  float64 // of the border
	title  string  // what is shown at the pointer
}

// shape is a path whose commands are M, L, Q, C and Z, each with absolute coordinates.
type shape struct {
	path   string
	dx, dy float64 // where the path begins
	fill   role    // "" = none
	line   role    // "" = none
	width  float64 // of the line
	dashed bool
}

// text is a line of text.
type text struct {
	content  string
	x, y     float64 // the start of its base line, or the middle
	centered bool
	bold     bool
	size     float64
	fill     role
}

// Measures, as in the page.
const (
	nodeRadius   = 9
	labelRadius  = 4
	borderWidth  = 1.2
	edgeWidth    = 1.4
	iconSize     = 16
	iconX        = 13
	nameX        = 36
	nameSize     = 12
	labelSize    = 11
	labelDescent = 3.5 // from the middle of a label to its base line
	nameDescent  = 4.2
)

// paintAll paints the drawing, edges first.
func (d *Drawing) paintAll(c canvas) {
	for i := range d.Edges {
		d.Edges[i].paintLine(c)
	}
	for i := range d.Edges {
		d.Edges[i].paintLabel(c)
	}
	for _, j := range d.Joins {
		c.paintBox(box{Place: j, radius: j.Height / 2, fill: roleStroke})
	}
	for i := range d.Nodes {
		d.Nodes[i].paintNode(c)
	}
}

func (e *Edge) paintLine(c canvas) {
	c.paintShape(shape{path: e.Path, line: roleStroke, width: edgeWidth, dashed: e.IsConditional})
	if head := makeArrowHead(e.Path); head != "" {
		c.paintShape(shape{path: head, fill: roleStroke})
	}
}

func (e *Edge) paintLabel(c canvas) {
	if e.LabelAt == nil {
		return
	}
	c.paintBox(box{Place: *e.LabelAt, radius: labelRadius, fill: roleGround})
	c.paintText(text{content: e.Label, x: e.LabelAt.X, y: e.LabelAt.Y + labelDescent, centered: true, size: labelSize, fill: roleNote})
}

func (n *Node) paintNode(c canvas) {
	b := box{Place: n.Place, radius: nodeRadius, fill: rolePanel, border: roleStroke, width: borderWidth, title: n.findTitle()}
	switch n.Kind {
	case kindStart, kindEnd:
		b.radius = n.Height / 2
		c.paintBox(b)
		c.paintText(text{content: n.Kind, x: n.X, y: n.Y + nameDescent, centered: true, size: nameSize, fill: roleNote})
		return
	case kindAsk:
		b.border = roleAccent
	}
	left, icon := n.X-n.Width/2, roleNote
	if n.Kind == kindAsk {
		icon = roleAccent
	}
	c.paintBox(b)
	c.paintShape(shape{path: n.Icon, dx: left + iconX, dy: n.Y - iconSize/2, line: icon, width: edgeWidth})
	c.paintText(text{content: n.Label, x: left + nameX, y: n.Y + nameDescent, bold: true, size: nameSize, fill: roleName})
}

// findTitle returns the whole name of the node.
func (n *Node) findTitle() string {
	if n.Kind == kindStart || n.Kind == kindEnd {
		return n.Kind
	}
	return visible.Line(n.Name)
}
