package drawing

import (
	"context"
	"slices"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// Format is a format of pictures.
type Format string

// Formats of pictures.
const (
	SVG Format = "svg"
	PNG Format = "png"
)

// IsFormat reports whether a name is that of a format of pictures.
func IsFormat(name string) bool { return Format(name) == SVG || Format(name) == PNG }

// Request is what a picture shows, and how.
type Request struct {
	Spec   *graphdv1.GraphSpec
	Format Format
	Theme  Theme
	Limits Limits
}

// Picture is a drawing in a format of pictures.
type Picture struct {
	Data    []byte
	Lacking string // characters that are boxes in it
}

// DrawGraph draws a graph. Errors: *exit.UsageError for an unknown theme, *exit.HintError for a graph
// that is too large; that of the context; others are defects.
func DrawGraph(ctx context.Context, r Request) (Picture, error) {
	if !slices.Contains(Themes(), r.Theme) {
		return Picture{}, exit.Usagef("--theme %s: the themes are %s, %s and %s", r.Theme, Auto, Light, Dark)
	}
	drawing, err := LayoutGraph(ctx, r.Spec, r.Limits)
	if err != nil {
		return Picture{}, addHint(err)
	}
	if r.Format == SVG {
		return Picture{Data: drawing.EncodeSVG(r.Spec.GetName(), r.Theme)}, nil
	}
	data, lacking, err := drawing.EncodePNG(ctx, r.Theme)
	return Picture{Data: data, Lacking: lacking}, addHint(err)
}

// addHint adds to the errors of large graphs what draws them.
func addHint(err error) error {
	switch err.(type) { //nolint:errorlint // both come as they are
	case *LimitError:
		return &exit.HintError{Err: err, Hint: "-o text writes the graph as Mermaid, for programs that draw larger ones"}
	case *SizeError:
		return &exit.HintError{Err: err, Hint: "-o svg draws it in any size"}
	}
	return err
}
