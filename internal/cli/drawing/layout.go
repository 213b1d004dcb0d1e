package drawing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dop251/goja"
	"google.golang.org/protobuf/encoding/protojson"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/visible"
	"github.com/graphd-dev/graphd/page"
)

// Drawing is where the nodes and edges of a graph are, in pixels of CSS from the top left. Labels
// are visible text.
type Drawing struct {
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
	Nodes  []Node  `json:"nodes"`
	Edges  []Edge  `json:"edges"`
	Joins  []Place `json:"joins"` // bars in which the edges of a join meet
}

// Place is a rectangle around its centre.
type Place struct {
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
}

// Node is a node, the start or the end.
type Node struct {
	Place

	Name  string `json:"name"`  // as in the graph
	Label string `json:"label"` // visible, and cut to the width
	Kind  string `json:"kind"`  // start, end, ask, remote, expr, function or graph
	Icon  string `json:"icon"`  // the path of the icon, in a square of 16
}

// Edge leads from a node to a node. Those of one kind between the same nodes are one.
type Edge struct {
	From          string `json:"from"`
	To            string `json:"to"`
	Label         string `json:"label"`
	IsConditional bool   `json:"isConditional"`
	Path          string `json:"path"`
	LabelAt       *Place `json:"labelAt"` // nil = there is no label
}

// Kinds of nodes that are drawn in another way than the others.
const (
	kindStart = "start"
	kindEnd   = "end"
	kindAsk   = "ask"
)

// LayoutGraph finds out where nodes and edges are. Errors: *LimitError; that of the context; others
// are defects.
func LayoutGraph(ctx context.Context, spec *graphdv1.GraphSpec, limits Limits) (*Drawing, error) {
	text, err := protojson.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("the graph as JSON: %w", err)
	}
	vm := goja.New()
	vm.SetMaxCallStackSize(limits.Calls)
	stop := limits.interruptAtLimits(ctx, vm)
	answer, err := callDraw(vm, string(text))
	stop()
	if err != nil {
		return nil, limits.explainInterrupt(ctx, err, len(spec.GetNodes()))
	}
	d := &Drawing{}
	if err := json.NewDecoder(strings.NewReader(answer)).Decode(d); err != nil {
		return nil, fmt.Errorf("the layout of the graph: %w", err)
	}
	return d, nil
}

// callDraw loads the script of the page, and calls its function draw.
func callDraw(vm *goja.Runtime, spec string) (string, error) {
	if _, err := vm.RunScript("drawing.js", page.DrawingScript); err != nil {
		return "", err
	}
	draw, ok := goja.AssertFunction(vm.Get("drawing").ToObject(vm).Get("draw"))
	if !ok {
		return "", errors.New("drawing.js has no function draw")
	}
	answer, err := draw(goja.Undefined(), vm.ToValue(spec), vm.ToValue(visible.Line))
	if err != nil {
		return "", err
	}
	return answer.String(), nil
}
