package form

import graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"

// WithoutBreakpoints returns the questions without breakpoints, which need no
// answer.
func WithoutBreakpoints(questions []*graphdv1.Interrupt) []*graphdv1.Interrupt {
	var asked []*graphdv1.Interrupt
	for _, q := range questions {
		if q.GetReason() != "breakpoint" {
			asked = append(asked, q)
		}
	}
	return asked
}
