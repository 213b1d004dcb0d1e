package graphd_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"strings"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/client"
	"github.com/graphd-dev/graphd/graph"
)

// Texts is the state of the example of routes.
type Texts struct {
	Texts   []string `json:"texts,omitempty"`
	Counts  []int    `json:"counts,omitempty" graph:"append"`
	Longest int      `json:"longest,omitempty"`
	Warning string   `json:"warning,omitempty"`
}

// Text is what a task of count gets.
type Text struct {
	Text string `json:"text"`
}

// each has a task of its own count each text. They run side by side.
func each(_ context.Context, t Texts) (any, error) {
	if len(t.Texts) == 0 {
		return "compare", nil
	}
	var tasks []graph.Target
	for _, text := range t.Texts {
		tasks = append(tasks, graph.Send("count", Text{text}))
	}
	return tasks, nil
}

// count gets what was sent in the place of the state, and returns what it writes to the state.
func count(_ context.Context, t Text) (any, error) {
	return Texts{Counts: []int{len(strings.Fields(t.Text))}}, nil
}

func compare(_ context.Context, t Texts) (any, error) {
	return Texts{Longest: slices.Max(append(t.Counts, 0))}, nil
}

func tooLong(_ context.Context, t Texts) (any, error) {
	if t.Longest > 3 {
		return "warn", nil
	}
	return graph.End, nil
}

func warn(_ context.Context, t Texts) (any, error) {
	return Texts{Warning: fmt.Sprintf("one has %d words", t.Longest)}, nil
}

func newTexts() *graph.Builder {
	return graph.New("texts").State(Texts{}).
		Node("count", graph.Typed(count)).
		Node("compare", graph.Typed(compare)).
		Node("warn", graph.Typed(warn)).
		Route(graph.Start, graph.Typed(each), "count", "compare").
		Edge("count", "compare"). // once, after all tasks of count
		Route("compare", graph.Typed(tooLong), "warn").
		Edge("warn", graph.End)
}

// Each text goes to a task of its own, and what they find comes together.
func Example_mapReduce() {
	if err := compareTexts(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output: [2 5] 5 "one has 5 words"
}

func compareTexts(ctx context.Context) error {
	e, err := graphd.Open(ctx, graphd.Memory(), newTexts())
	if err != nil {
		return err
	}
	defer e.Close(context.WithoutCancel(ctx))
	outcome, err := e.Invoke(ctx, client.Run{Graph: "texts", Input: Texts{Texts: []string{"two words", "and these are five words"}}})
	if err != nil {
		return err
	}
	texts, err := client.Output[Texts](outcome)
	if err != nil {
		return err
	}
	fmt.Printf("%v %d %q\n", texts.Counts, texts.Longest, texts.Warning)
	return nil
}
